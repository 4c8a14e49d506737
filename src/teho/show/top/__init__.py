"""`teho top`: a run that continues, in the terminal."""
