"""What `teho launch --check` does, in each rank; `check.py` beside it starts it."""
