"""Waste of many jobs, judged by the figures of the accounting and the thresholds of the rules."""
