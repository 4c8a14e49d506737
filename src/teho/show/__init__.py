"""Documents of results, rendered as text, HTML and JSON."""
