"""Finds calls in a program's source that are slow on a GPU, wherever the program waits for them."""
