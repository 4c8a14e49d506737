"""Fits laws of scaling to the measured runs, with confidence intervals.

The Universal Scalability Law (N. J. Gunther, *Guerrilla Capacity Planning*, Springer 2007) has the
throughput of n workers as X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)); without kappa it
is Amdahl's law (AFIPS 1967). n / X(n) is linear in 1/lambda, sigma/lambda and kappa/lambda: a fit
is a least-squares problem with two or three columns, and no parameter below 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from teho.experiment.spread import Spread
from teho.model.scaled import CurvePoint, Estimate, Fit

__all__ = ["FEWEST_SIZES", "REACH", "fit"]

FEWEST_SIZES = {"amdahl": 3, "usl": 4}
"""One more than the parameters of the law: a curve fits any smaller number exactly."""
REACH = 2.0
"""A fitted curve goes up to this many times the largest size."""
_DRAWS = 1000
_POINTS_PER_DOUBLING = 4
_ALIKE = 1e-12
"""Share of the squares that a parameter must explain; less is rounding."""

_Vector = Sequence[float]
_Drawn = Sequence[tuple["_Law", float]]
"""Fitted laws, each with the throughput of the base."""


class _Law(NamedTuple):
    """1/lambda, sigma/lambda and kappa/lambda."""

    serial: float
    contended: float
    coherent: float

    def throughput(self, n: float) -> float:
        return n / (self.serial + self.contended * (n - 1) + self.coherent * n * (n - 1))

    def peak_n(self, smallest: int) -> float:
        """Return sqrt((1 - sigma) / kappa), but at least the smallest size."""
        if not self.coherent:
            return math.inf
        return max(
            float(smallest), math.sqrt(max(self.serial - self.contended, 0.0) / self.coherent)
        )


def fit(law: Literal["amdahl", "usl"], spread: Spread, base_n: int) -> Fit | None:
    """Fit a law to throughputs; None if there are too few sizes or no run was repeated.

    A size counts more if its relative error is smaller.

    Args:
        law: to fit.
        spread: of the runs, by the number of workers.
        base_n: size with which speed-ups compare.
    """
    sizes = sorted(spread.log_means)
    if len(sizes) < FEWEST_SIZES[law] or not spread.errors:
        return None
    problem = _Problem(FEWEST_SIZES[law] - 1, spread)
    best = problem.solve(dict.fromkeys(sizes, 0.0))
    base = math.exp(spread.log_means[base_n])
    drawn = [
        (problem.solve(deviations), base * math.exp(deviations[base_n]))
        for deviations in spread.draws(_DRAWS)
    ]
    laws = [one for one, _ in drawn]
    kappa = _estimate(best.coherent / best.serial, [one.coherent / one.serial for one in laws])
    most = REACH * sizes[-1]
    return Fit(
        law=law,
        one_work_per_s=_estimate(1 / best.serial, [1 / one.serial for one in laws]),
        contention=_estimate(
            best.contended / best.serial, [one.contended / one.serial for one in laws]
        ),
        coherency=kappa if law == "usl" else None,
        peak_n=_peak(best, laws, sizes[0], most) if kappa.low else None,
        off_percent=max(
            100 * abs(best.throughput(n) / math.exp(spread.log_means[n]) - 1) for n in sizes
        ),
        curve=tuple(_curve(best, base, drawn, _places(sizes[0], most))),
    )


class _Problem:
    """A least-squares problem for many right-hand sides: the measured one and random ones."""

    def __init__(self, parameters: int, spread: Spread) -> None:
        self._sizes = sorted(spread.log_means)
        # Each size counts by its relative error. Without errors, all count the same.
        self._weights = [1 / (spread.errors[n] or 1.0) for n in self._sizes]
        shapes = [(1.0, n - 1.0, n * (n - 1.0)) for n in self._sizes]
        scales = [
            weight * math.exp(spread.log_means[n]) / n
            for n, weight in zip(self._sizes, self._weights, strict=True)
        ]
        self._columns = [
            [scale * shape[place] for scale, shape in zip(scales, shapes, strict=True)]
            for place in range(parameters)
        ]
        self._supports = [
            ((0, *some), _pseudo_inverse([self._columns[place] for place in (0, *some)]))
            for count in range(parameters)
            for some in combinations(range(1, parameters), count)
        ]
        """Sets of parameters above 0, the smallest first, each with its pseudo-inverse."""

    def solve(self, deviations: Mapping[int, float]) -> _Law:
        """Return the best law with no parameter below 0.

        Args:
            deviations: of the logarithms of the throughputs from the measured ones.
        """
        values = [
            weight * math.exp(-deviations[n])
            for n, weight in zip(self._sizes, self._weights, strict=True)
        ]
        least, best = math.inf, _Law(1.0, 0.0, 0.0)
        for support, rows in self._supports:
            found = dict(zip(support, (_dot(row, values) for row in rows), strict=True))
            if found[0] <= 0 or min(found.values()) < 0:
                continue
            fitted = [
                sum(found[place] * self._columns[place][row] for place in support)
                for row in range(len(values))
            ]
            squares = sum((a - b) ** 2 for a, b in zip(values, fitted, strict=True))
            if squares < least - _ALIKE * _dot(values, values):
                least, best = squares, _Law(*(found.get(place, 0.0) for place in range(3)))
        return best


def _pseudo_inverse(columns: Sequence[_Vector]) -> list[list[float]]:
    """Return the matrix that turns a right-hand side into the least-squares solution.

    It uses modified Gram-Schmidt, which is more exact than normal equations.
    """
    basis: list[list[float]] = []
    upper: list[list[float]] = []
    for column in columns:
        rest, above = list(column), []
        for one in basis:
            above.append(_dot(one, rest))
            rest = [value - above[-1] * part for value, part in zip(rest, one, strict=True)]
        above.append(math.sqrt(_dot(rest, rest)))
        basis.append([value / above[-1] for value in rest])
        upper.append(above)
    solved: list[list[float]] = list(basis)
    for place in reversed(range(len(columns))):
        for later in range(place + 1, len(columns)):
            solved[place] = [
                value - upper[later][place] * part
                for value, part in zip(solved[place], solved[later], strict=True)
            ]
        solved[place] = [value / upper[place][place] for value in solved[place]]
    return solved


def _dot(left: _Vector, right: _Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _interval(drawn: Sequence[float]) -> tuple[float, float]:
    """Return the 2.5 % and the 97.5 % point."""
    ordered, place = sorted(drawn), len(drawn) // 40
    return ordered[place - 1], ordered[-place]


def _estimate(value: float, drawn: Sequence[float]) -> Estimate:
    low, high = _interval(drawn)
    return Estimate(value=value, low=low, high=high)


def _peak(best: _Law, laws: Sequence[_Law], smallest: int, most: float) -> Estimate | None:
    value = best.peak_n(smallest)
    low, high = _interval([one.peak_n(smallest) for one in laws])
    if value > most:
        return None
    return Estimate(value=value, low=low, high=high if high <= most else None)


def _places(smallest: int, most: float) -> list[float]:
    """Return numbers of workers from the smallest to the largest, with equal ratios."""
    count = math.ceil(_POINTS_PER_DOUBLING * math.log2(most / smallest))
    return [smallest * (most / smallest) ** (place / count) for place in range(count + 1)]


def _curve(best: _Law, base: float, drawn: _Drawn, places: Sequence[float]) -> Iterator[CurvePoint]:
    for n in places:
        low, high = _interval([law.throughput(n) / own for law, own in drawn])
        yield CurvePoint(n, best.throughput(n) / base, low, high)
