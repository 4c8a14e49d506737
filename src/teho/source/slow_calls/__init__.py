"""Calls in loops for which there is a faster way to the same result."""
