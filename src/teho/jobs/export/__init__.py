"""Writes recordings in the formats of other tools."""
