"""How fast a program goes once it has warmed up, from the times of its steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

__all__ = ["FEWEST_STEPS", "Pace", "pace_of"]

FEWEST_STEPS = 10
"""Fewer are no pace: data come in bursts of as many batches as there are workers."""
_BLOCKS = 10
"""Pieces of a window that are compared with each other."""
_NEAR = 0.25
"""So far from the later pace a piece may be, or three median deviations, to count as steady."""
_LONGEST = 3.0
"""Windows for which the end of an epoch is waited for."""


class Pace(NamedTuple):
    """Steps of a span of time in which the program went steadily."""

    steps: int
    from_s: float
    until_s: float
    is_whole: bool
    """Whether that was long enough."""

    @property
    def steps_per_s(self) -> float:
        """Steps a second."""
        return self.steps / (self.until_s - self.from_s)


def pace_of(times_s: Sequence[float], epochs_s: Sequence[float], window_s: float) -> Pace | None:
    """Return the pace since warm-up, or None if there are no two steps.

    If epochs end within the window, whole epochs are counted: what each costs at its beginning,
    such as the start of workers, then weighs as it does in the long run.

    Args:
        times_s: when each step was done.
        epochs_s: when the first batch of each epoch came.
        window_s: how long is long enough.
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
    """Return the place of the step from which on the pace is that of the later half.

    A piece must be near it, and the median of it and the next two: a single slow one, such as where
    an epoch ends, belongs to the program. The first step is always left out.
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
    """Return how many steps were done by then, the one that was going on in part."""
    place = bisect_left(times_s, at_s)
    if place == 0:
        return 0.0
    if place == len(times_s):
        return float(place)
    before_s, after_s = times_s[place - 1], times_s[place]
    return place + (at_s - before_s) / (after_s - before_s)
