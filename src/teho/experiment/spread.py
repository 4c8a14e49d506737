"""How far runs of the same differ, and what that leaves open of ratios between them.

Throughputs differ by factors, so all is counted in logarithms. A few runs of one variant tell
little of chance; those of all together tell more, so their variances are pooled. A variant whose
own runs differ more than that keeps its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from teho.model.scaled import Estimate

__all__ = ["Spread", "spread_of"]

_Z = 1.959964
"""97.5 % point of the normal distribution."""
_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}
"""Degrees of freedom -> 97.5 % point of Student's t, where the series below is not good enough."""
_FARTHEST = 50.0
"""Draws of a logarithm lie no farther out, so that every figure stays finite."""


class Spread(NamedTuple):
    """Mean and error of each variant, by its key."""

    log_means: dict[int, float]
    """Of the runs' throughputs."""
    errors: dict[int, float]
    """Standard errors of those; empty if no run was repeated."""
    freedom: int
    """Degrees of freedom of the errors."""

    def mean(self, key: int) -> Estimate:
        """Return the geometric mean of a variant's runs."""
        return self._estimate(self.log_means[key], self.errors.get(key))

    def ratio(self, over: int, under: int) -> Estimate:
        """Return the ratio of two variants, which is exact where they are the same."""
        if over == under:
            return Estimate(value=1.0, low=1.0, high=1.0)
        error = math.hypot(self.errors[over], self.errors[under]) if self.errors else None
        return self._estimate(self.log_means[over] - self.log_means[under], error)

    def _estimate(self, log: float, error: float | None) -> Estimate:
        if error is None:
            return Estimate(value=math.exp(log))
        half = _student(self.freedom) * error
        return Estimate(value=math.exp(log), low=math.exp(log - half), high=math.exp(log + half))

    def draws(self, count: int) -> Iterator[dict[int, float]]:
        """Yield deviations of the variants' logarithms from their means, as chance would have them.

        A parametric bootstrap: with two or three runs of each, drawing from the runs themselves
        would see too little of chance. The same every time: it begins at the same seed.
        """
        chance = random.Random(0)  # noqa: S311  # chance, not secrecy
        for _ in range(count):
            # Chi squared, so that the deviations are Student's; one for all, as the variance is.
            widened = math.sqrt(self.freedom / chance.gammavariate(self.freedom / 2, 2.0))
            yield {
                key: max(-_FARTHEST, min(_FARTHEST, error * widened * chance.gauss(0.0, 1.0)))
                for key, error in self.errors.items()
            }


def spread_of(throughputs: Mapping[int, Sequence[float]]) -> Spread:
    """Return what the runs of each variant tell.

    Args:
        throughputs: of each variant one or more, above 0, in any unit.
    """
    logs = {key: [math.log(value) for value in values] for key, values in throughputs.items()}
    means = {key: fmean(values) for key, values in logs.items()}
    squares = {
        key: sum((value - means[key]) ** 2 for value in values) for key, values in logs.items()
    }
    freedom = sum(len(values) - 1 for values in logs.values())
    if not freedom:
        return Spread(means, {}, 0)
    pooled = sum(squares.values()) / freedom
    errors = {
        key: math.sqrt(max(pooled, squares[key] / max(len(values) - 1, 1)) / len(values))
        for key, values in logs.items()
    }
    return Spread(means, errors, freedom)


def _student(freedom: int) -> float:
    """Return the 97.5 % point of Student's t (Abramowitz and Stegun, 26.7.5)."""
    z, series = (
        _Z,
        (
            (_Z**3 + _Z) / 4,
            (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96,
            (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384,
        ),
    )
    return _T.get(freedom) or z + sum(
        term / freedom**power for power, term in enumerate(series, start=1)
    )
