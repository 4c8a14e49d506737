"""Documents as HTML, each in one file that needs nothing else."""
