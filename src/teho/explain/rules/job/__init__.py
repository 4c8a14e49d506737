"""The run as a whole: its end, its length, its tasks and its steps."""
