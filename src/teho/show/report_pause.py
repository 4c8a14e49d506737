"""How long to wait between two reports of a running run."""

from __future__ import annotations

__all__ = ["REPORT_S", "report_pause_s"]

REPORT_S = 10.0
"""Shortest pause: the recording has new rows after this time."""
_SHARE = 0.02
"""Largest share of a core for reports: with the rows of 1,250 nodes, a report takes a minute."""


def report_pause_s(cpu_s: float, least_s: float = REPORT_S) -> float:
    """Return how long to wait before the next report.

    Args:
        cpu_s: CPU time of the last report.
        least_s: the shortest pause.
    """
    return max(least_s, cpu_s / _SHARE)
