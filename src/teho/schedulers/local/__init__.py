"""This machine as a scheduler: it starts a plan's script without a queue."""

SCHEDULER = "teho.schedulers.local.scheduler:LocalScheduler"
"""The class that describes it. With this row, the folder is a scheduler."""
