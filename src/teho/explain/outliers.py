"""Find the GPU, node or task that differs from many others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from teho.model.finding import Threshold
from teho.units import GIB

__all__ = ["outlier_scores"]

_NORMAL_MAD = 0.6745
"""The median absolute deviation of normally distributed values, in standard deviations."""


def outlier_scores(
    values: Sequence[float | None], unit: str, limits: Mapping[str, Threshold]
) -> list[float]:
    """Return how far each value is from the others (n,); beyond -1 and 1 it is an outlier.

    The result is the distance from the median, divided by the larger of two:

    - the distance at which Iglewicz and Hoaglin's modified z-score, 0.6745 × distance ÷ MAD,
      reaches its limit. A few extreme values change mean and standard deviation, but not the median
      and the MAD (median absolute deviation);
    - a minimum distance. If all other values are equal, the MAD is 0 and any noise would count.

    Of two values, neither is an outlier: it is not known which of them is wrong. The same is true
    if half of the values differ from the other half.

    Args:
        values: one figure for each; None if it is missing, which is never an outlier.
        unit: of the values; it decides on the minimum distance.
        limits: the policy's thresholds of outliers.
    """
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    middle = statistics.median(known)
    mad = statistics.median([abs(value - middle) for value in known])
    least = max(limits["deviations"].value * mad / _NORMAL_MAD, _minimum(unit, middle, limits))
    return [0.0 if value is None or not least else (value - middle) / least for value in values]


def _minimum(unit: str, middle: float, limits: Mapping[str, Threshold]) -> float:
    if unit == "%":
        return limits["points_min"].value
    least = {
        "cores": limits["cores_min"].value,
        "bytes": limits["memory_min_gib"].value * GIB,
        "s": limits["time_min_s"].value,
    }.get(unit, 0.0)
    return max(least, limits["relative_min_percent"].value / 100 * abs(middle))
