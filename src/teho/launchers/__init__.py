"""Launchers start the processes of a program in a job. Each launcher is one file here."""
