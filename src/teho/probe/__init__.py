"""What goes into the user's Python programs: `inject/` is on their path, and knows no Teho."""
