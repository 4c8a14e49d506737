"""Cores, threads, and what Python does on them."""
