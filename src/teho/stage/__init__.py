"""Copies data to another file system or to a cluster, and checks the copy."""
