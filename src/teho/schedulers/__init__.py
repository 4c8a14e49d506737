"""Slurm, Grid Engine, or nothing: what they tell a job about itself."""
