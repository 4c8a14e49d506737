"""A plan's option as the text of a batch script, for any scheduler."""
