"""Several runs of a program, and one verdict."""
