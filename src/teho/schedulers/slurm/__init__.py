"""Slurm 20.11 to 26: its abilities, commands, answers and scripts."""

SCHEDULER = "teho.schedulers.slurm.scheduler:SlurmScheduler"
"""The class that describes it. With this row, the folder is a scheduler."""
