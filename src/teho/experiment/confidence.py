"""Confidence intervals of medians, and of speed-ups from runs that took turns.

`teho tune` and `teho compare` judge their runs once or twice. Each check is 97.5 % sure or more,
so both together are 95 % sure (Bonferroni). Differences between processes count as chance; the
windows of a single run would not show them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, stdev

from teho.model.tuned import Gain

__all__ = [
    "FEWEST_PAIRS",
    "LONG_SECOND_CHECKS",
    "SECOND_CHECKS",
    "equal_at",
    "first_check",
    "gain_of",
    "median_rank",
    "second_check",
]

FEWEST_PAIRS = 3
_T = {2: 6.205, 3: 4.177}
"""Degrees of freedom -> 98.75 % point of Student's t."""
_MISSES_ONE_IN = 40
"""How often the interval of one check may miss the true value."""
SECOND_CHECKS = (10, 7)
"""Numbers of pairs for a second check, the largest first."""
LONG_SECOND_CHECKS = (22, 16, *SECOND_CHECKS)
"""The same if a pair takes seconds. If runs differ by 8 %, 16 pairs show a gain of 15 % in nine of
ten cases, and ten pairs in seven (benchmarked with a simulated program)."""

Pairs = Sequence[tuple[float, float]]
"""Speeds of two consecutive runs that differ only in their settings."""


def first_check(pairs: Pairs) -> Gain:
    """Return how many times as fast the second of each pair is, by the mean of the logarithms.

    Args:
        pairs: three or four.
    """
    ratios = [math.log(after / before) for before, after in pairs]
    mean, count = fmean(ratios), len(ratios)
    half = _T[count - 1] * stdev(ratios) / math.sqrt(count)
    return Gain(
        times=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half), pairs=count
    )


def second_check(pairs: Pairs) -> Gain:
    """Return the same by the median, which a few disturbed runs do not change.

    Args:
        pairs: a number from `LONG_SECOND_CHECKS`. Of ten pairs, one may have been disturbed.
    """
    ratios = sorted(after / before for before, after in pairs)
    rank = median_rank(len(ratios), _MISSES_ONE_IN)
    return Gain(times=median(ratios), low=ratios[rank - 1], high=ratios[-rank], pairs=len(ratios))


def gain_of(before: Sequence[float], after: Sequence[float]) -> Gain | None:
    """Return how many times as fast the second is; None if fewer than three runs took turns.

    Args:
        before: speeds in the order of the rounds.
        after: the same.
    """
    pairs = list(zip(before, after, strict=False))
    for count in SECOND_CHECKS:
        if len(pairs) >= count:
            return second_check(pairs[:count])
    return first_check(pairs[: FEWEST_PAIRS + 1]) if len(pairs) >= FEWEST_PAIRS else None


def median_rank(count: int, misses_one_in: int) -> int:
    """Return which smallest and largest values enclose the true median.

    The number of values below the true median is binomial with one half, whatever their
    distribution is. If there are too few values, the rank is 1.

    Args:
        count: number of values.
        misses_one_in: how often the interval may miss the median, such as once in 20.
    """
    rank, below = 1, 1
    while rank < count // 2:
        below += math.comb(count, rank)
        if misses_one_in * 2 * below > 2**count:
            break
        rank += 1
    return rank


def equal_at(points: Sequence[tuple[float, float]]) -> float:
    """Return the size at which two are equally fast: on a straight line in the logarithms.

    Args:
        points: rising sizes, each with the speed of one relative to the other. The first speed is
            at most 1 and the last more than 1. If 1 is crossed several times, the last one counts.
    """
    (low, before), (high, after) = [
        (one, other) for one, other in pairwise(points) if one[1] <= 1 < other[1]
    ][-1]
    share = math.log(before) / math.log(before / after)
    return low * math.pow(high / low, share)
