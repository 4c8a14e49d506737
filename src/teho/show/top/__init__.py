"""`teho top`: a run that goes on, in the terminal."""
