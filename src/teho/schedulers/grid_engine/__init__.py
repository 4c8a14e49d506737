"""Grid Engine 8.1 and its relatives: abilities, commands, answers and scripts."""

SCHEDULER = "teho.schedulers.grid_engine.scheduler:GridEngineScheduler"
"""The class that describes it. With this row, the folder is a scheduler."""
