"""Documents as HTML, each in one self-contained file."""
