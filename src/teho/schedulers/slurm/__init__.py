"""Slurm, 20.11 to 26: what it can do, its commands and answers, its scripts."""

SCHEDULER = "teho.schedulers.slurm.scheduler:SlurmScheduler"
"""The class that says so, by which this folder is a scheduler."""
