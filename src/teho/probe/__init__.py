"""The code inside the user's Python programs: `inject/` is on their path, and does not use Teho."""
