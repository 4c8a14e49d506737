"""Computes medians and their noise, agreement of results, and crossovers from samples.

A placement is faster, slower, or equal within noise. nvbench-compare has the same three verdicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import NamedTuple, Union

import msgspec

from teho.bench.watch import Seen
from teho.experiment.confidence import equal_at, median_rank
from teho.model.bench import Agreement, Amortisation, Crossover, Point, Timing

__all__ = [
    "FEWEST_SAMPLES",
    "Samples",
    "agreement_of",
    "amortisation_of",
    "crossover_of",
    "fastest",
    "key_of",
    "timing_of",
]

FEWEST_SAMPLES = 6
"""Fewest samples for an interval of 95 %: with five, the widest has only 93.8 % (binomial)."""
_MISSES_ONE_IN = 20
"""How often an interval of 95 % may miss the true median."""
_COPIES = ("copy in", "copy out")
_NOTHING = Seen()


class Samples(NamedTuple):
    """The times that a program measured for one phase at one point."""

    point: Point
    library: str
    placement: str
    phase: str
    first_s: float
    samples_s: tuple[float, ...]
    """Time of one run, in each sample."""
    calls: int
    flop: Union[float, None] = None
    bytes: Union[float, None] = None
    items: Union[float, None] = None
    memory_bytes: Union[int, None] = None


def timing_of(
    samples: Samples,
    peak: float | None = None,
    seen: Seen = _NOTHING,
) -> Timing:
    """Return a phase's median with its confidence interval.

    Args:
        samples: one or more.
        peak: of the device, in FLOP/s, or in B/s if the phase only moves bytes.
        seen: what was read of the GPU meanwhile.
    """
    times_s, count = sorted(samples.samples_s), len(samples.samples_s)
    middle_s = median(times_s)
    rank = median_rank(count, _MISSES_ONE_IN)
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
        **seen._asdict(),
        memory_bytes=samples.memory_bytes,
    )


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
    """Return whether figures agree with a reference.

    Args:
        samples: point, library and placement of the figures.
        figures: None is not a number, and never agrees.
        reference: the same number of figures.
        tolerance: for the largest difference, relative to the reference's largest figure.
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
    """Return a placement's fastest timing of these phases at each point, by `key_of`."""
    found: dict[str, Timing] = {}
    for timing in timings:
        if timing.placement == placement and timing.phase in phases:
            key = key_of(timing.point)
            if key not in found or timing.median_s < found[key].median_s:
                found[key] = timing
    return found


def key_of(point: Point) -> str:
    """Return a key for a point: for one row of a table.

    The number of images is not part of it. A CPU may train on a part of the images of a GPU, and
    then their images/s are compared.
    """
    return repr(sorted(item for item in point.items() if item[0] != "images"))


def crossover_of(
    timings: Iterable[Timing],
    phase: str,
    slow: str,
    fast: str,
    axis: str,
    group: str,
    slow_phase: str = "",
) -> Crossover | None:
    """Return the point from which on one placement is faster than another, beyond noise.

    The crossover is between two measured points. Other points are not judged.

    Args:
        timings: of one group of points.
        phase: to compare.
        slow: placement that is slower at small points.
        fast: placement that is faster at large points.
        axis: key of the points that rises.
        group: the fixed part of the points, in words.
        slow_phase: phase of `slow`, if it has another name there.

    Returns:
        None if no point was measured on both.
    """
    timings = list(timings)
    ours, theirs = fastest(timings, fast, [phase]), fastest(timings, slow, [slow_phase or phase])
    both = sorted(
        ((float(own.point[axis]), own, theirs[key]) for key, own in ours.items() if key in theirs),
        key=lambda row: row[0],
    )
    if not both:
        return None
    first = len(both)
    while first and both[first - 1][1].high_s < both[first - 1][2].low_s:
        first -= 1
    last, own, other = both[-1]
    found = Crossover(
        phase=phase,
        slow_phase=slow_phase,
        group=group,
        slow=slow,
        fast=fast,
        outcome="never" if first == len(both) else "from" if first else "always",
        last=last,
        times=other.median_s / own.median_s,
        libraries=(other.library, own.library),
    )
    if found.outcome != "from":
        return found
    found = msgspec.structs.replace(found, high=both[first][0])
    loses = [place for place in range(first) if both[place][1].low_s > both[place][2].high_s]
    if not loses:
        return found
    speeds = [(size, other.median_s / own.median_s) for size, own, other in both]
    return msgspec.structs.replace(
        found, low=both[loses[-1]][0], estimate=equal_at(speeds[loses[-1] : first + 1])
    )


def amortisation_of(
    timings: Iterable[Timing],
    kernels: Collection[str],
    placement: str,
    against: str,
    group: str,
    cpu_kernels: Collection[str] = (),
) -> list[Amortisation]:
    """Return the number of runs after which a GPU has made up for its first run and its copies.

    Data are copied in once, and the result out once if that is a separate phase. Points at which
    the GPU's kernels are not faster are left out.

    Args:
        timings: of one group of points.
        kernels: phases with only the computation. The fastest of them counts.
        placement: of the GPU.
        against: placement with CPUs. Its fastest library counts.
        group: the fixed part of the points, in words.
        cpu_kernels: phases of the CPUs, if they have other names there.
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
            Amortisation(
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
