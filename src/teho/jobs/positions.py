"""Finds which rows of a log are from the same round, if only their times are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

__all__ = ["positions_by_time"]

_ALIKE = 0.95
"""Part of the rounds that must have the same number of rows."""
_RATIO = 3.0
"""A distance between two rounds is at least this many times longer than one within a round."""
_LONGEST_S = 0.5
"""A program prints all GPUs of a node in less time."""
_SHORTEST_S = 1e-3
"""Programs print times with ms."""


def positions_by_time(times_s: Sequence[float]) -> list[int] | None:
    """Return the position of each row in its round: 0, 1, 2, 3, 0, 1, …; None if it is not clear.

    A program that logs four GPUs every second prints four rows within some ms, and then none for
    almost a second. With one GPU, all distances are about the same.

    Args:
        times_s: time of each row, in the order of the file.
    """
    gaps = [later - earlier for earlier, later in pairwise(times_s)]
    for longest_s in _limits(gaps):
        found = _positions(gaps, longest_s)
        if found is not None:
            return found
    is_regular = not gaps or min(gaps) * _RATIO > sorted(gaps)[len(gaps) // 2]
    return [0] * len(times_s) if is_regular else None


def _limits(gaps: Sequence[float]) -> Iterator[float]:
    """Yield the distances that may be the longest within a round, shortest first."""
    lengths = sorted({max(gap, _SHORTEST_S) for gap in gaps})
    for shorter, longer in pairwise(lengths):
        if longer >= _RATIO * shorter and shorter <= _LONGEST_S:
            yield shorter


def _positions(gaps: Sequence[float], longest_s: float) -> list[int] | None:
    """Return the positions if rounds with this longest distance are alike; else None."""
    found = [0]
    for gap in gaps:
        found.append(found[-1] + 1 if max(gap, _SHORTEST_S) <= longest_s else 0)
    sizes = [size + 1 for size, after in pairwise(found) if after == 0]
    if not sizes:
        return None
    (size, alike), *_ = Counter(sizes).most_common()
    # The last round may be cut off.
    is_clear = size > 1 and alike >= _ALIKE * len(sizes) and max(found) < size
    return found if is_clear else None
