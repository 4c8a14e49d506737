"""How fast a curve rises, by a fit that single extreme values do not change."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

__all__ = ["Trend", "TrendPoint", "thinned", "trend_of"]

_MOST = 60
"""Highest number of points of a fit, which compares each point with each other."""


class TrendPoint(NamedTuple):
    """One value of a curve."""

    at_s: float
    value: float


class Trend(NamedTuple):
    """A line through a curve."""

    per_s: float
    """Slope by Theil and Sen: the median of the slopes between any two points."""
    rising_percent: float
    """Share of all pairs of points that rise: 100 is monotonic, 50 is noise."""


def thinned(points: Sequence[TrendPoint]) -> list[TrendPoint]:
    """Return at most 60 points, each the mean of some neighbours."""
    each = -(-len(points) // _MOST)
    if each <= 1:
        return list(points)
    groups = [points[start : start + each] for start in range(0, len(points), each)]
    return [
        TrendPoint(fmean(point.at_s for point in group), fmean(point.value for point in group))
        for group in groups
    ]


def trend_of(points: Sequence[TrendPoint]) -> Trend | None:
    """Return the line through some points in order of time; None for fewer than two points."""
    slopes = [
        (later.value - point.value) / (later.at_s - point.at_s)
        for place, point in enumerate(points)
        for later in points[place + 1 :]
    ]
    if not slopes:
        return None
    rising = sum(slope > 0 for slope in slopes)
    return Trend(median(slopes), 100 * rising / len(slopes))
