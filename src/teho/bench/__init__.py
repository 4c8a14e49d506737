"""Worked examples of CPU against GPU: their programs, how they are measured and judged."""
