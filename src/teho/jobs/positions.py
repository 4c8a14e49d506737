"""Finds which rows of a log are from the same round, if only their times are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["positions_by_time"]

_ALIKE = 0.95
"""Part of the rounds that must have the same number of rows."""
_PART = 0.95


def positions_by_time(times_s: Sequence[float]) -> list[int] | None:
    """Return the position of each row in its round: 0, 1, 2, 3, 0, 1, …; None if it is not clear.

    A program that logs four GPUs every second prints four rows within some ms, and then none for
    almost a second. With one GPU, all distances are about the same.

    Args:
        times_s: time of each row, in the order of the file.
    """
    gaps = [later - earlier for earlier, later in pairwise(times_s)]
    if not gaps:
        return [0] * len(times_s)
    # With up to 16 GPUs, at least one of 16 distances is between two rounds.
    longest = sorted(gaps)[min(len(gaps) - 1, int(_PART * len(gaps)))]
    found, position = [0], 0
    for gap in gaps:
        position = position + 1 if gap < longest / 2 else 0
        found.append(position)
    sizes = [size + 1 for size, after in pairwise(found) if after == 0]
    if not sizes:
        return None if len(times_s) > 1 and longest > 0 else [0] * len(times_s)
    (size, alike), *_ = Counter(sizes).most_common()
    # The last round may be cut off.
    return found if alike >= _ALIKE * len(sizes) and max(found) < size else None
