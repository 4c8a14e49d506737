"""What the source of the user's program shows about the lines that took time."""
