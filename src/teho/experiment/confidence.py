"""How sure a gain is, from runs that took turns: a first look, and a second if it did not tell.

Each look is sure to 97.5 % or more, so that both together keep the 95 % that is said (Bonferroni).
What differs from process to process counts as chance, which windows of one run would not show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from teho.model.tuned import Gain

__all__ = ["FEWEST_PAIRS", "LONG_SECOND_LOOKS", "SECOND_LOOKS", "first_look", "second_look"]

FEWEST_PAIRS = 3
_T = {2: 6.205, 3: 4.177}
"""Degrees of freedom -> 98.75 % point of Student's t."""
_RANK = {22: 6, 16: 4, 10: 2, 7: 1}
"""How many pairs -> from which smallest to which largest ratio the interval goes. It holds the
median but for 1.7 %, 2.1 %, 2.1 % and 1.6 % of all cases (binomial), however the noise is
distributed; of ten pairs, one may have been disturbed."""
SECOND_LOOKS = (10, 7)
"""Numbers of pairs for a second look, the most first."""
LONG_SECOND_LOOKS = (22, 16, *SECOND_LOOKS)
"""The same where a pair takes seconds: a gain of 15 % where runs differ by 8 % is shown by 16 pairs
in nine of ten cases, and by ten pairs in seven (benchmarked with a simulated program)."""

Pairs = Sequence[tuple[float, float]]
"""Speeds of two runs one after the other, of which all but the settings is equal."""


def first_look(pairs: Pairs) -> Gain:
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


def second_look(pairs: Pairs) -> Gain:
    """Return the same by the median, which a few disturbed runs do not move.

    Args:
        pairs: as many as `LONG_SECOND_LOOKS` has.
    """
    ratios, count = sorted(after / before for before, after in pairs), len(pairs)
    rank = _RANK[count]
    return Gain(times=median(ratios), low=ratios[rank - 1], high=ratios[-rank], pairs=count)
