"""Which of many like figures stand out: the one GPU, node or task that differs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from teho.model.finding import Threshold
from teho.units import GIB

__all__ = ["stand_out"]

_NORMAL_MAD = 0.6745
"""The median absolute deviation of normally distributed values, in standard deviations."""


def stand_out(
    values: Sequence[float | None], unit: str, limits: Mapping[str, Threshold]
) -> list[float]:
    """Return how far each value lies from the others (n,); beyond -1 and 1 it stands out.

    It is the distance from the median, divided by the larger of two:

    - the distance at which Iglewicz and Hoaglin's modified z-score, 0.6745 × distance ÷ MAD,
      reaches its limit. Median and MAD (median absolute deviation) do not move for a few wild
      values, as mean and standard deviation do;
    - a floor. If all others are alike to the digit, MAD is 0 and any noise would stand out.

    Of two values neither stands out: which of them is the odd one, nobody can say. The same
    holds where half of them differ from the other half.

    Args:
        values: one figure of each; None if it is missing, which does not stand out.
        unit: their unit, which decides on the floor.
        limits: the policy's thresholds of outliers.
    """
    seen = [value for value in values if value is not None]
    if not seen:
        return [0.0] * len(values)
    middle = statistics.median(seen)
    mad = statistics.median([abs(value - middle) for value in seen])
    least = max(limits["deviations"].value * mad / _NORMAL_MAD, _floor(unit, middle, limits))
    return [0.0 if value is None or not least else (value - middle) / least for value in values]


def _floor(unit: str, middle: float, limits: Mapping[str, Threshold]) -> float:
    if unit == "%":
        return limits["points_min"].value
    least = {
        "cores": limits["cores_min"].value,
        "bytes": limits["memory_min_gib"].value * GIB,
        "s": limits["time_min_s"].value,
    }.get(unit, 0.0)
    return max(least, limits["relative_min_percent"].value / 100 * abs(middle))
