"""Write a plan's option as a batch script, for any scheduler."""
