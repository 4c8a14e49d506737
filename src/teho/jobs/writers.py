"""Notices logs into which several programs have written at the same time.

If two machines write into one file, the rows of both have the same index. The figures of such a GPU
would be a mixture of two GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

__all__ = ["writer_count"]

_MOST = 16
_RATIO = 5.0
"""The distance to the row of the same program varies this many times less than that to the next."""
_ALIKE = 0.85
"""Part of the distances that must come again."""
_LEAST_PART = 0.02
"""Smaller differences of the distances, as a part of the period, are chance."""
_ROWS = 20


def writer_count(times_s: Sequence[float]) -> int:
    """Return how many programs have written the rows of one GPU; 1 if it is not clear.

    Each program writes at its own regular times. So the distances between rows come again in the
    same order: 0.3 s, 0.7 s, 0.3 s, 0.7 s for two programs that write every second.

    Args:
        times_s: time of each row of the GPU, ascending.
    """
    gaps = [later - earlier for earlier, later in pairwise(times_s)]
    if len(gaps) < _ROWS:
        return 1
    to_next = median(_changes(gaps, 1))
    if to_next <= _LEAST_PART * median(gaps):
        return 1
    for count in range(2, _MOST + 1):
        changes = sorted(_changes(gaps, count))
        if len(changes) >= _ROWS // 2 and _RATIO * changes[int(_ALIKE * len(changes))] < to_next:
            return count
    return 1


def _changes(gaps: Sequence[float], distance: int) -> Iterator[float]:
    return (abs(later - earlier) for earlier, later in zip(gaps, gaps[distance:], strict=False))
