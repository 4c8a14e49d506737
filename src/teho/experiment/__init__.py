"""Several runs of a program, one verdict."""
