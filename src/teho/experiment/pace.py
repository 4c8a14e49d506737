"""The steady pace of a program after its warm-up, from the times of its steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

__all__ = ["FEWEST_STEPS", "Pace", "pace_of"]

FEWEST_STEPS = 10
"""Fewest steps for a pace, because loader workers deliver batches in bursts."""
_BLOCKS = 10
"""Number of pieces of a window that are compared with each other."""
_NEAR = 0.25
"""A piece is steady if it differs by less from the later pace, or by three median deviations."""
_LONGEST = 3.0
"""Number of windows for which Teho waits for the end of an epoch."""


class Pace(NamedTuple):
    """Steps in a span of time with a steady pace."""

    steps: int
    from_s: float
    until_s: float
    is_whole: bool
    """Whether the span is long enough."""

    @property
    def steps_per_s(self) -> float:
        """Steps per second."""
        return self.steps / (self.until_s - self.from_s)


def pace_of(times_s: Sequence[float], epochs_s: Sequence[float], window_s: float) -> Pace | None:
    """Return the pace after the warm-up, or None if there are fewer than two steps.

    If epochs end within the window, whole epochs are counted. So the start of each epoch, for
    example of its workers, has its normal share.

    Args:
        times_s: when each step was done.
        epochs_s: when the first batch of each epoch came.
        window_s: how long a span must be.
    """
    if len(times_s) < 2 or times_s[-1] <= times_s[0]:
        return None
    first = _steady_from(times_s, window_s)
    began_s, now_s = times_s[first], times_s[-1]
    inside = [at_s for at_s in epochs_s if began_s <= at_s <= now_s]
    is_long = now_s - began_s >= window_s and len(times_s) - 1 - first >= FEWEST_STEPS
    if not inside:
        return Pace(len(times_s) - 1 - first, began_s, now_s, is_long)
    epochs = Pace(
        bisect_left(times_s, inside[-1]) - bisect_left(times_s, inside[0]),
        inside[0],
        inside[-1],
        is_whole=inside[-1] - inside[0] >= window_s,
    )
    is_over = now_s - began_s >= _LONGEST * window_s
    if epochs.steps >= FEWEST_STEPS and (epochs.is_whole or is_over):
        return epochs._replace(is_whole=True)
    return Pace(len(times_s) - 1 - first, began_s, now_s, is_long and is_over)


def _steady_from(times_s: Sequence[float], window_s: float) -> int:
    """Return the index of the first step with the pace of the later half.

    A piece must be near that pace, and so must the median of it and the next two. A single slow
    piece, such as the end of an epoch, is part of the program. The first step never counts.
    """
    began_s, span_s = times_s[0], times_s[-1] - times_s[0]
    count = max(2 * _BLOCKS, int(_BLOCKS * span_s / window_s))
    edges = [began_s + span_s * place / count for place in range(count + 1)]
    done = [_done(times_s, at_s) for at_s in edges]
    paces = [after - before for before, after in pairwise(done)]
    later = paces[count // 2 :]
    level = median(later)
    near = max(_NEAR * level, 3 * median(abs(one - level) for one in later))
    for place in range(count // 2):
        if all(
            abs(one - level) <= near for one in (paces[place], median(paces[place : place + 3]))
        ):
            return min(bisect_left(times_s, edges[place]), len(times_s) - 2)
    return min(bisect_left(times_s, edges[count // 2]), len(times_s) - 2)


def _done(times_s: Sequence[float], at_s: float) -> float:
    """Return the number of steps done at a time, with a fraction of the current one."""
    place = bisect_left(times_s, at_s)
    if place == 0:
        return 0.0
    if place == len(times_s):
        return float(place)
    before_s, after_s = times_s[place - 1], times_s[place]
    return place + (at_s - before_s) / (after_s - before_s)
