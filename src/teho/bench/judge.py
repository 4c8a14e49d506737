"""What follows from samples: medians and their noise, agreement, and where one beats another. Pure.

The shape of the verdicts (faster, slower, or not to be told for noise) is nvbench-compare's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import NamedTuple, Union

import msgspec

from teho.model.bench import Agreement, Crossover, PayOff, Point, Timing

__all__ = [
    "FEWEST_SAMPLES",
    "Samples",
    "agreement_of",
    "crossover_of",
    "fastest",
    "key_of",
    "pay_off_of",
    "timing_of",
]

FEWEST_SAMPLES = 6
"""Fewer have no interval of 95 %: even from least to most is 93.8 % of five (binomial)."""
_MISSES_ONE_IN = 20
"""How often an interval of 95 % does not hold what it should."""
_COPIES = ("copy in", "copy out")


class Samples(NamedTuple):
    """What a program told of one phase at one point."""

    point: Point
    library: str
    placement: str
    phase: str
    first_s: float
    samples_s: tuple[float, ...]
    """Each for one run."""
    calls: int
    flop: Union[float, None] = None
    bytes: Union[float, None] = None
    items: Union[float, None] = None


def timing_of(
    samples: Samples,
    peak: float | None = None,
    thermal_percent: float | None = None,
    power_percent: float | None = None,
) -> Timing:
    """Return a phase's median and how sure it is, by the order of the samples.

    Args:
        samples: one or more.
        peak: of the device, in FLOP/s or, where the phase has bytes alone, B/s.
        thermal_percent: share of looks at the device that saw it slowed by heat.
        power_percent: the same by its power cap.
    """
    times_s, count = sorted(samples.samples_s), len(samples.samples_s)
    middle_s = median(times_s)
    rank = _rank(count)
    low_s, high_s = times_s[rank - 1], times_s[-rank]
    done = samples.flop if samples.flop is not None else samples.bytes
    return Timing(
        point=samples.point,
        library=samples.library,
        placement=samples.placement,
        phase=samples.phase,
        first_s=samples.first_s,
        median_s=middle_s,
        low_s=low_s,
        high_s=high_s,
        noise_percent=None if count < FEWEST_SAMPLES else 50 * (high_s - low_s) / middle_s,
        drift_percent=_drift_percent(samples.samples_s),
        samples=count,
        calls=samples.calls,
        flop_per_s=_rate(samples.flop, middle_s),
        bytes_per_s=_rate(samples.bytes, middle_s),
        items_per_s=_rate(samples.items, middle_s),
        peak_percent=None if peak is None or done is None else 100 * done / middle_s / peak,
        thermal_throttle_percent=thermal_percent,
        power_throttle_percent=power_percent,
    )


def _rank(count: int) -> int:
    """Return which smallest and largest samples enclose the median with 95 % confidence.

    The number of samples below the true median is binomial with one half, however they are
    distributed. Of fewer than six: the first and the last.
    """
    rank, below = 1, 1
    while rank < count // 2:
        below += math.comb(count, rank)
        if _MISSES_ONE_IN * 2 * below > 2**count:
            break
        rank += 1
    return rank


def _drift_percent(samples_s: Sequence[float]) -> float | None:
    quarter = len(samples_s) // 4
    if quarter < 2:
        return None
    return 100 * (median(samples_s[-quarter:]) / median(samples_s[:quarter]) - 1)


def _rate(amount: float | None, seconds: float) -> float | None:
    return None if amount is None else amount / seconds


def agreement_of(
    samples: tuple[Point, str, str],
    figures: Sequence[float | None],
    reference: Sequence[float | None],
    tolerance: float,
    by: str,
) -> Agreement:
    """Return whether figures are within a tolerance of others.

    Args:
        samples: point, library and placement of the figures.
        figures: None is what was not a number; that agrees with nothing.
        reference: as many.
        tolerance: of the largest difference, relative to the reference's largest figure.
        by: library and placement of the reference.
    """
    point, library, placement = samples
    error = _error(figures, reference)
    return Agreement(
        point=point,
        library=library,
        placement=placement,
        reference=by,
        error=error,
        tolerance=tolerance,
        agrees=error is not None and error <= tolerance,
    )


def _error(figures: Sequence[float | None], reference: Sequence[float | None]) -> float | None:
    pairs = list(zip(figures, reference, strict=False))
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not known or len(known) < max(len(figures), len(reference)):
        return None
    largest = max(abs(other) for _, other in known)
    difference = max(abs(one - other) for one, other in known)
    return difference / largest if largest else difference


def fastest(
    timings: Iterable[Timing], placement: str, phases: Collection[str]
) -> dict[str, Timing]:
    """Return a placement's fastest timing of any of the phases at each point, by its `key_of`."""
    found: dict[str, Timing] = {}
    for timing in timings:
        if timing.placement == placement and timing.phase in phases:
            key = key_of(timing.point)
            if key not in found or timing.median_s < found[key].median_s:
                found[key] = timing
    return found


def key_of(point: Point) -> str:
    """Return a point as something that points can be found by."""
    return repr(sorted(point.items()))


def crossover_of(
    timings: Iterable[Timing],
    phase: str,
    slow: str,
    fast: str,
    axis: str,
    group: str,
    slow_phase: str = "",
) -> Crossover | None:
    """Return from which point on one placement beats another, beyond noise.

    Nothing is said of points that were not measured: the crossover lies between two that were.

    Args:
        timings: of one group of points.
        phase: that is compared.
        slow: placement that is to be beaten.
        fast: placement that is to beat it.
        axis: key of the points along which it is sought.
        group: what is held fixed, in words.
        slow_phase: what of the slow one it is compared with, where that is another phase.

    Returns:
        None if no point was measured in both.
    """
    timings = list(timings)
    ours, theirs = fastest(timings, fast, [phase]), fastest(timings, slow, [slow_phase or phase])
    both = sorted(
        ((float(own.point[axis]), own, theirs[key]) for key, own in ours.items() if key in theirs),
        key=lambda row: row[0],
    )
    if not both:
        return None
    places = [place for place, _, _ in both]
    wins = [own.high_s < other.low_s for _, own, other in both]
    first = len(wins)
    while first and wins[first - 1]:
        first -= 1
    last, own, other = both[-1]
    found = Crossover(
        phase=phase,
        slow_phase=slow_phase,
        group=group,
        slow=slow,
        fast=fast,
        outcome="never" if first == len(wins) else "from" if first else "always",
        last=last,
        times=other.median_s / own.median_s,
        libraries=(other.library, own.library),
    )
    if found.outcome != "from":
        return found
    loses = [place for place in range(first) if both[place][1].low_s > both[place][2].high_s]
    return msgspec.structs.replace(
        found,
        low=places[loses[-1]] if loses else None,
        high=places[first],
        estimate=_equal_at(both[loses[-1] : first + 1]) if loses else None,
    )


def _equal_at(rows: Sequence[tuple[float, Timing, Timing]]) -> float:
    """Return where the lines between the medians cut for the last time, in logarithms of both.

    Args:
        rows: place, own and the other's timing; of the first the other is faster, of the last not.
    """
    leads = [math.log(other.median_s / own.median_s) for _, own, other in rows]
    at = max(place for place, lead in enumerate(leads) if lead <= 0)
    share = leads[at] / (leads[at] - leads[at + 1])
    return rows[at][0] * math.pow(rows[at + 1][0] / rows[at][0], share)


def pay_off_of(
    timings: Iterable[Timing],
    kernels: Collection[str],
    placement: str,
    against: str,
    group: str,
    cpu_kernels: Collection[str] = (),
) -> list[PayOff]:
    """Return after how many runs a GPU has made up for its first one and for its copies.

    Data are copied in once, and the result out once where that is a phase of its own. Points at
    which its kernels are not faster never pay, and are left out.

    Args:
        timings: of one group of points.
        kernels: phases that are the computation alone; the fastest of them counts.
        placement: of the GPU.
        against: placement of CPUs, of which the fastest library counts.
        group: what is held fixed, in words.
        cpu_kernels: what of the CPUs they are compared with, where those are other phases.
    """
    timings = list(timings)
    theirs = fastest(timings, against, cpu_kernels or kernels)
    found = []
    for key, own in fastest(timings, placement, kernels).items():
        copies_s = {
            timing.phase: timing.median_s
            for timing in timings
            if timing.phase in _COPIES
            and (timing.library, timing.placement, key_of(timing.point))
            == (own.library, placement, key)
        }
        if key not in theirs or "copy in" not in copies_s or own.high_s >= theirs[key].low_s:
            continue
        first_s = max(0.0, own.first_s - own.median_s) + sum(copies_s.values())
        found.append(
            PayOff(
                group=group,
                point=own.point,
                library=own.library,
                placement=placement,
                phase=own.phase,
                against=against,
                first_s=first_s,
                run_s=own.median_s,
                against_s=theirs[key].median_s,
                runs=first_s / (theirs[key].median_s - own.median_s),
            )
        )
    return found
