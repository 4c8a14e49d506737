"""Says when another command has put a file into a folder of the run.

A recorder of a large job must ask the shared file system seldom. A command that writes a file for
the recorders, such as `teho top`, changes the time of the run's folder (`announce`). So a recorder
asks only for this time.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from zlib import crc32

__all__ = ["MANY_NODES", "RunChanges", "announce", "seal_spread_s", "share_of"]

MANY_NODES = 100
"""From this number of nodes on, the recorders do not write their first rows, and do not seal, all
at once."""
_SEALS_PER_S, _LONGEST_SPREAD_S = 250.0, 5.0
"""Recorders that seal in a second: each needs about 30 operations of the metadata server. The user
waits for the last one, and Slurm kills a step 30 s after its time limit."""

_LONGEST_S = 20.0
"""Each node asks at least once in this time. Few nodes ask more often: all together ask about twice
per second."""
_JITTER_S = 0.1
_SURE_CHECKS, _SURE_CHECKS_LARGE = 6, 15
"""A file system with a coarse clock may give two changes the same time, so a change is reported
after this number of questions in any case. In a large job, listing a folder is more costly."""


def share_of(node: str) -> float:
    """Return a number from 0 to 1 that differs between nodes, so that they do not act at once."""
    return crc32(node.encode()) / 2**32


def seal_spread_s(node_count: int) -> float:
    """Return the time over which the recorders of a job begin to seal."""
    if node_count < MANY_NODES:
        return 0.0
    return min(node_count / _SEALS_PER_S, _LONGEST_SPREAD_S)


def announce(run: Path) -> None:
    """Report a new file to the recorders of a run."""
    with contextlib.suppress(OSError):
        os.utime(run)


class RunChanges:
    """Checks for changes of one run.

    Args:
        run: the run's directory.
        node_count: number of nodes of the recording.

    Attributes:
        period_s: time between two questions.
    """

    def __init__(self, run: Path, node_count: int) -> None:
        self._run = run
        self.period_s = min(max(1.0, 2.0 * (node_count - 1)), _LONGEST_S)
        self._sure_checks = _SURE_CHECKS if node_count < MANY_NODES else _SURE_CHECKS_LARGE
        self._read_s = float("-inf")
        self._time_ns = 0
        self._polls = 0
        self._count = 0

    def count(self, now_s: float) -> int:
        """Return a number that increases with each change.

        Args:
            now_s: monotonic time.
        """
        # A sample comes a little earlier or later than a period after the sample before.
        if now_s - self._read_s >= self.period_s - _JITTER_S:
            self._read_s = now_s
            with contextlib.suppress(OSError):
                time_ns = self._run.stat().st_mtime_ns
                if time_ns != self._time_ns or self._polls % self._sure_checks == 0:
                    self._count += 1
                self._time_ns = time_ns
                self._polls += 1
        return self._count
