"""Traces of frameworks' own profilers: read, summarised and explained."""
