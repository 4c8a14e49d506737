"""Other processes: become a program, fork children, call with a deadline, exchange JSON lines."""
