"""Readings of one node: the host, and its GPUs. Each vendor of GPUs is one folder."""
