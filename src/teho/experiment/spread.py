"""How much runs of a variant differ, and the confidence intervals of ratios between variants.

Throughputs differ by factors, so this module uses logarithms. A few runs of one variant show little
about chance, so the variances of all variants are pooled. If a variant's own variance is larger
than the pooled one, it keeps its own.
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
"""Degrees of freedom -> 97.5 % point of Student's t, for which the series below is inexact."""
_FARTHEST = 50.0
"""Limit for random deviations of a logarithm. It keeps every figure finite."""


class Spread(NamedTuple):
    """Means and errors of the variants, by their keys."""

    log_means: dict[int, float]
    """Means of the logarithms of the throughputs."""
    errors: dict[int, float]
    """Standard errors of the means; empty if no run was repeated."""
    freedom: int
    """Degrees of freedom of the errors."""

    def mean(self, key: int) -> Estimate:
        """Return the geometric mean of a variant's runs."""
        return self._estimate(self.log_means[key], self.errors.get(key))

    def ratio(self, over: int, under: int) -> Estimate:
        """Return the ratio of two variants; it is exact if they are the same."""
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
        """Yield random deviations of the logarithms from their means.

        This is a parametric bootstrap. Two or three runs of a variant are too few to draw from the
        runs themselves. The seed is fixed, so the result is always the same.
        """
        chance = random.Random(0)  # noqa: S311  # chance, not secrecy
        for _ in range(count):
            # Student's t, from one chi squared for all, as the variance is pooled.
            widened = math.sqrt(self.freedom / chance.gammavariate(self.freedom / 2, 2.0))
            yield {
                key: max(-_FARTHEST, min(_FARTHEST, error * widened * chance.gauss(0.0, 1.0)))
                for key, error in self.errors.items()
            }


def spread_of(throughputs: Mapping[int, Sequence[float]]) -> Spread:
    """Return means and errors of the runs of each variant.

    Args:
        throughputs: one or more of each variant, above 0, in any unit.
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
