"""Lazy tables, which a loop may compute again in each iteration."""
