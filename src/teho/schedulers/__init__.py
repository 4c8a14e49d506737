"""Schedulers: a folder for each, and modules that all of them use."""
