"""Databases of a program: statements, tables and indexes."""
