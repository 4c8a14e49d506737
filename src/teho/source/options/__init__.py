"""Options of library functions that make a part of a program's work expensive."""
