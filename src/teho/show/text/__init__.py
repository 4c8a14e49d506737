"""Documents as text, for a terminal or a file."""
