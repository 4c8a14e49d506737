"""Run a program under several placements in turns, until it is clear which is worth it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple, Protocol

from teho.config.privacy import masked_command
from teho.experiment.confidence import FEWEST_PAIRS, SECOND_LOOKS
from teho.experiment.contest import Terms, judge
from teho.experiment.outputs import other_results
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.recorded import Recorded
from teho.model.compared import BreakEven, Compared, Point, Sample
from teho.units import format_count, format_duration

__all__ = ["Run", "Wish", "compare", "crossing", "terms_of"]

_LONGEST = 0.5
"""Share of the time that one run may take: with fewer than two of each, nothing can be said."""


class Wish(NamedTuple):
    """What is to be compared."""

    command: tuple[str, ...]
    placements: Sequence[Placement]
    """The smallest first."""
    terms: Terms
    for_s: float
    """How long all may take together."""
    swept: str = ""
    """What `{NAME}` in the command stands for; empty: nothing is swept."""
    values: tuple[float | None, ...] = (None,)
    """Rising."""
    site: str = ""
    cost_unit: str = ""
    notes: tuple[str, ...] = ()
    """To be told with the result."""


class Run(Protocol):
    """What runs the program once under a placement, `Runner.run`."""

    def __call__(self, placement: Placement, limit_s: float) -> Recorded:
        """Run it, for so long at most."""
        ...


def terms_of(
    placements: Sequence[Placement], prices: Prices | None, gpu_cores: int | None
) -> tuple[Terms, str, list[str]]:
    """Return what placements cost, the unit, and a sentence where that does not compare.

    Args:
        placements: what is to be priced.
        prices: of a site; None: none was named.
        gpu_cores: how many cores cost as much as a GPU, where the user says it.
    """
    counts = {len(place.gpus) for place in placements if place.gpus}
    same = {count: count * gpu_cores for count in counts} if gpu_cores else {}
    if prices is None:
        return Terms({}, same), "", []
    costs = {
        place.name: cost
        for place in placements
        if (cost := prices.hourly(*_kind_and_count(place))) is not None
    }
    units = {cost.unit for cost in costs.values()}
    if len(units) > 1:
        each = " and ".join(sorted(units))
        note = (
            f"{prices.site} bills cores and GPUs in units that do not compare ({each}): "
            "`--gpu-cost CORES` says how many core-hours a GPU-hour is worth to you."
        )
        return Terms({}, same), "", [] if gpu_cores else [note]
    if not gpu_cores:
        known = ((count, prices.same_cost_cores(count)) for count in counts)
        same = {count: cores for count, cores in known if cores is not None}
    notes = [] if costs else [f"{prices.site} does not say what such jobs cost."]
    hourly = {name: cost.amount for name, cost in costs.items()}
    return Terms(hourly, same), next(iter(units), ""), notes


def _kind_and_count(place: Placement) -> tuple[str, int]:
    return ("gpu", len(place.gpus)) if place.gpus else ("cpu", len(place.cores))


class _Comparison:
    def __init__(
        self,
        run: Run,
        placements: Sequence[Placement],
        for_s: float,
        tell: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._run = run
        self._placements = placements
        self._for_s = for_s
        self._tell = tell
        self._clock = clock
        self._began_s = clock()
        self._rounds_s: list[float] = []
        self.runs: dict[Placement, list[Sample]] = {place: [] for place in placements}
        self.printed: dict[str, list[str]] = {}
        self.is_interrupted = False

    @property
    def left_s(self) -> float:
        return self._for_s - (self._clock() - self._began_s)

    def affords(self, rounds: int) -> bool:
        return not self._rounds_s or self.left_s >= rounds * fmean(self._rounds_s)

    def round(self) -> None:
        """Run each placement once that is still in; every other round in reverse."""
        began_s = self._clock()
        fit = [place for place in self._placements if not _is_out(self.runs[place])]
        # A machine that slows down by and by favours nobody.
        for number, place in enumerate(fit[:: 1 if len(self._rounds_s) % 2 == 0 else -1]):
            limit_s = self.left_s
            if not self._rounds_s:
                limit_s = _LONGEST * self.left_s / (len(fit) - number)
            recorded = self._run(place, max(limit_s, 1.0))
            self.runs[place].append(recorded.sample)
            if recorded.output is not None:
                self.printed.setdefault(place.name, []).append(recorded.output)
            self._tell(f"{place.name}: {_words(recorded.sample)}")
        self._rounds_s.append(self._clock() - began_s)

    @property
    def rounds(self) -> int:
        return len(self._rounds_s)

    @property
    def fit(self) -> int:
        return sum(not _is_out(own) for own in self.runs.values())


def _is_out(samples: Sequence[Sample]) -> bool:
    return any(sample.why for sample in samples)


def _words(sample: Sample) -> str:
    if sample.why:
        return sample.why
    if sample.is_whole or sample.steps_per_s is None:
        return format_duration(sample.elapsed_s)
    return f"{sample.steps_per_s:.3g} {sample.unit}s/s"


def compare(
    wish: Wish,
    id_: str,
    run_at: Callable[[float | None], Run],
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Compared:
    """Run a program under each placement in turns, until the verdict is clear or the time is over.

    Where a number is swept, each value gets an equal share of the time that is left. A
    KeyboardInterrupt ends it early, with what is known then.

    Args:
        wish: what is to be compared.
        id_: of this comparison.
        run_at: returns what runs the program, with one value of what is swept.
        tell: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program does not start.
    """
    began_s, points = clock(), list[Point]()
    notes = list(wish.notes)
    for number, value in enumerate(wish.values):
        left_s = wish.for_s - (clock() - began_s)
        own_s = left_s / (len(wish.values) - number)
        point, is_interrupted = _compare_at(run_at(value), wish, own_s, tell, value, clock)
        points.append(point)
        if is_interrupted:
            notes.append("It was ended early.")
            break
    edge = crossing(points, wish.swept) if wish.swept else None
    return Compared(
        id=id_,
        command=tuple(masked_command(wish.command)),
        outcome=points[-1].outcome,
        verdict=_verdict(points, edge, wish.swept),
        swept=wish.swept,
        points=tuple(points),
        break_even=edge,
        site=wish.site,
        cost_unit=wish.cost_unit,
        notes=tuple(notes),
        elapsed_s=clock() - began_s,
    )


def _verdict(points: Sequence[Point], edge: BreakEven | None, swept: str) -> str:
    last = points[-1]
    if edge is None or last.contest is None:
        where = f" at {swept} = {format_count(last.value)}" if last.value is not None else ""
        return last.verdict + where
    larger = next(one for one in last.variants if one.name == last.contest.larger)
    smaller = next(one for one in last.variants if one.name == last.contest.smaller)
    return (
        f"From {swept} = {format_count(edge.at)} on {larger.words} "
        f"{'is' if larger.words.startswith('1 ') else 'are'} faster than {smaller.words}; "
        f"at {format_count(last.value or 0.0)}, {last.contest.speed.times:.2f} times as fast"
    )


def _compare_at(
    run: Run,
    wish: Wish,
    for_s: float,
    tell: Callable[[str], None],
    value: float | None,
    clock: Callable[[], float],
) -> tuple[Point, bool]:
    """Return what came of one value, and whether somebody ended it early.

    There are two looks at the figures, after three or four rounds and after seven or ten, so that
    it does not go on until it pleases.
    """
    comparison = _Comparison(run, wish.placements, for_s, tell, clock)
    is_interrupted = False
    try:
        while comparison.rounds < FEWEST_PAIRS and comparison.affords(1):
            comparison.round()
            if comparison.fit < 2:
                break
        point = judge(comparison.runs, wish.terms, value)
        if comparison.fit >= 2 and comparison.rounds == FEWEST_PAIRS and not _is_clear(point):
            more = next(
                (
                    count - FEWEST_PAIRS
                    for count in SECOND_LOOKS
                    if comparison.affords(count - FEWEST_PAIRS)
                ),
                0,
            )
            for _ in range(more):
                comparison.round()
    except KeyboardInterrupt:
        is_interrupted = True
    notes = other_results(comparison.printed)
    return judge(comparison.runs, wish.terms, value, notes), is_interrupted


def _is_clear(point: Point) -> bool:
    return point.outcome != "not_enough_evidence"


def crossing(points: Sequence[Point], swept: str) -> BreakEven | None:
    """Return from which value on the larger allocation is the faster one, by time alone.

    Between two values that were measured, straight in the logarithms; None where it is the faster
    one at all values or at none, or where it is not the same that are held against each other.

    Args:
        points: of rising values.
        swept: what was swept.
    """
    known = [
        (point.value, point.contest)
        for point in points
        if point.contest is not None and point.value is not None
    ]
    for (low, before), (high, after) in pairwise(known):
        if before.speed.times < 1 <= after.speed.times:
            slower, faster = math.log(before.speed.times), math.log(after.speed.times)
            share = -slower / (faster - slower)
            at = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
            return BreakEven(unit=swept, at=at, low=low, high=high)
    return None
