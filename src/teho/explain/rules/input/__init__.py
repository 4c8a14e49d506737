"""Programs that wait for their data."""
