"""What `teho launch --check` does, in each rank; `check.py` starts it."""
