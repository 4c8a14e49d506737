"""Grid Engine, 8.1 and its relatives: what it can do, its commands and answers, its scripts."""

SCHEDULER = "teho.schedulers.grid_engine.scheduler:GridEngineScheduler"
"""The class that says so, by which this folder is a scheduler."""
