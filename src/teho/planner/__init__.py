"""From what a program needs to what to ask for, or the reasons why not. Pure."""
