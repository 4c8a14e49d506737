"""This machine as a scheduler: a plan's script as processes, without a queue."""

SCHEDULER = "teho.schedulers.local.scheduler:LocalScheduler"
"""The class that says so, by which this folder is a scheduler."""
