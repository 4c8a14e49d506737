"""Formats of logs that `teho import` reads. Each format is one file here."""
