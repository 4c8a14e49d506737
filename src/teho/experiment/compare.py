"""Run a program under several placements in turns, until it is clear which is worth it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from teho.config.privacy import masked_command
from teho.experiment.confidence import FEWEST_PAIRS, SECOND_LOOKS
from teho.experiment.contest import Terms, judge
from teho.experiment.outputs import other_results
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.rounds import Rounds, Run
from teho.model.compared import BreakEven, Compared, Point
from teho.units import format_count

__all__ = ["Wish", "compare", "crossing", "terms_of"]


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
        id_: of this rounds.
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
    rounds = Rounds(run, wish.placements, for_s, tell, clock)
    is_interrupted = False
    try:
        while rounds.count < FEWEST_PAIRS and rounds.affords(1):
            rounds.round()
            if rounds.fit < 2:
                break
        point = judge(rounds.runs, wish.terms, value)
        if rounds.fit >= 2 and rounds.count == FEWEST_PAIRS and not _is_clear(point):
            more = next(
                (
                    count - FEWEST_PAIRS
                    for count in SECOND_LOOKS
                    if rounds.affords(count - FEWEST_PAIRS)
                ),
                0,
            )
            for _ in range(more):
                rounds.round()
    except KeyboardInterrupt:
        is_interrupted = True
    notes = other_results(rounds.printed)
    return judge(rounds.runs, wish.terms, value, notes), is_interrupted


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
