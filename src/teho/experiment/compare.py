"""Runs a program on several placements in turns, until the best one is clear."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from teho.config.privacy import masked_command
from teho.experiment.confidence import FEWEST_PAIRS, SECOND_CHECKS, equal_at
from teho.experiment.outputs import other_results
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.rounds import Rounds, RunOnce
from teho.experiment.verdict import Terms, judge, verb_of
from teho.model.compared import BreakEven, Compared, PairComparison, Point
from teho.units import format_count

__all__ = ["CompareRequest", "compare", "crossing", "summed_up", "terms_of"]


class CompareRequest(NamedTuple):
    """What to compare."""

    command: tuple[str, ...]
    placements: Sequence[Placement]
    """In the order of the table. All are compared with the first."""
    terms: Terms
    for_s: float
    """Time limit for all runs together."""
    swept: str = ""
    """The NAME in `{NAME}` of the command; empty: without a sweep."""
    values: tuple[float | None, ...] = (None,)
    """The values that replace `{NAME}`, rising."""
    site: str = ""
    cost_unit: str = ""
    notes: tuple[str, ...] = ()
    """To show with the result."""


def terms_of(
    placements: Sequence[Placement], prices: Prices | None, gpu_cores: int | None
) -> tuple[Terms, str, list[str]]:
    """Return the costs of placements, their unit, and sentences about costs that are missing.

    Args:
        placements: to be priced.
        prices: of a site; None: no site was named.
        gpu_cores: number of cores that cost as much as a GPU, if the user gave it.
    """
    counts = {len(place.gpus) for place in placements if place.gpus}
    same = {count: count * gpu_cores for count in counts} if gpu_cores else {}
    if prices is None:
        return Terms({}, same), "", []
    found = {
        place.name: prices.hourly("gpu" if place.gpus else "cpu", len(place.gpus or place.cores))
        for place in placements
    }
    costs = {name: cost for name, cost in found.items() if cost is not None}
    units = {cost.unit for cost in costs.values()}
    if len(units) > 1:
        each = " and ".join(sorted(units))
        note = (
            f"{prices.site} bills cores and GPUs in different units ({each}). Give the number of "
            "core-hours that a GPU-hour is worth to you: `--gpu-cost CORES`."
        )
        return Terms({}, same), "", [] if gpu_cores else [note]
    if not gpu_cores:
        known = ((count, prices.same_cost_cores(count)) for count in counts)
        same = {count: cores for count, cores in known if cores is not None}
    notes = [] if costs else [f"Teho does not know what the variants cost on {prices.site}."]
    hourly = {name: cost.amount for name, cost in costs.items()}
    return Terms(hourly, same), next(iter(units), ""), notes


def compare(
    wish: CompareRequest,
    id_: str,
    run_at: Callable[[float | None], RunOnce],
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Compared:
    """Run a program on each placement in turns, until the verdict is clear or the time is over.

    If a number is swept, each value gets an equal share of the remaining time. A
    KeyboardInterrupt ends the comparison early, with the result so far.

    Args:
        wish: what to compare.
        id_: of this comparison.
        run_at: returns a function that runs the program with one value of what is swept.
        progress: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program does not start.
    """
    began_s, points = clock(), list[Point]()
    notes = list(wish.notes)
    for number, value in enumerate(wish.values):
        left_s = wish.for_s - (clock() - began_s)
        own_s = left_s / (len(wish.values) - number)
        point, is_interrupted = _compare_at(run_at(value), wish, own_s, progress, value, clock)
        points.append(point)
        if is_interrupted:
            notes.append("The comparison was ended early.")
            break
    return summed_up(
        points,
        wish.swept,
        id=id_,
        command=tuple(masked_command(wish.command)),
        site=wish.site,
        cost_unit=wish.cost_unit,
        notes=tuple(notes),
        elapsed_s=clock() - began_s,
    )


def summed_up(points: Sequence[Point], swept: str, **about: Any) -> Compared:
    """Return the result of all points. The verdict is about the last one that could be compared.

    Args:
        points: by rising values of what is swept; one point without a sweep.
        swept: its name; empty: without a sweep.
        about: the other fields of `Compared`.
    """
    known = _alike(points)
    last = known[-1] if known else points[-1]
    edge = crossing(known, swept) if swept else None
    beyond = next((point.value for point in points[points.index(last) + 1 :]), None)
    lost = ""
    if beyond:
        lost = f". At {swept} = {format_count(beyond)}, the variants could not be compared"
    return Compared(
        outcome=last.outcome,
        verdict=_verdict(known or [last], edge, swept) + lost,
        swept=swept,
        points=tuple(points),
        break_even=edge,
        **about,
    )


def _alike(points: Sequence[Point]) -> list[Point]:
    """Return the points that compare GPUs with cores; if there are none, all with a comparison.

    If the memory of a GPU is full, only variants with cores are left. That is another question.
    """
    known = [point for point in points if point.comparison]
    return [point for point in known if point.comparison and _is_mixed(point.comparison)] or known


def _is_mixed(comparison: PairComparison) -> bool:
    return comparison.larger.partition(":")[0] != comparison.smaller.partition(":")[0]


def _verdict(known: Sequence[Point], edge: BreakEven | None, swept: str) -> str:
    last = known[-1]
    at = f"{swept} = {format_count(last.value)}" if last.value is not None else ""
    if edge is None or last.comparison is None:
        return f"At {at}: {last.verdict}" if at else last.verdict
    by_name = {one.name: one for one in last.variants}
    larger, smaller = by_name[last.comparison.larger], by_name[last.comparison.smaller]
    end = f": {last.verdict}"
    near = [one for one in known if one.value is not None and one.value >= edge.low]
    if (
        len({(one.comparison.larger, one.comparison.smaller) for one in near if one.comparison})
        == 1
    ):
        verb = verb_of(int(larger.name.partition(":")[2]))
        faster = f"{larger.words} {verb} faster than {smaller.words}"
        if last.outcome == "worth_it":
            end = f", {larger.words} {verb} {last.comparison.speed.times:.2f} times as fast"
    elif _is_mixed(last.comparison):  # at each value, the best of either kind
        faster = f"{'GPUs' if larger.kind == 'gpu' else 'Cores'} are faster than cores"
    else:
        noun = "GPUs" if larger.kind == "gpu" else "cores"
        faster = f"More {noun} are faster than fewer {noun}"
    return (
        f"{faster} if {swept} is more than about {format_count(float(f'{edge.at:.2g}'))} (this "
        f"limit is between {format_count(edge.low)} and {format_count(edge.high)}). At {at}{end}"
    )


def _compare_at(
    run: RunOnce,
    wish: CompareRequest,
    for_s: float,
    progress: Callable[[str], None],
    value: float | None,
    clock: Callable[[], float],
) -> tuple[Point, bool]:
    """Return the result for one value, and whether it was interrupted.

    The figures are judged only twice: after three rounds, and after the largest number of
    `SECOND_CHECKS` for which there is time. More checks would make a false verdict more likely.
    """
    rounds = Rounds(run, wish.placements, for_s, progress, clock)
    is_interrupted = False
    try:
        rounds.until(FEWEST_PAIRS)
        if rounds.count == FEWEST_PAIRS and _is_open(judge(rounds.runs, wish.terms)):
            affordable = (count for count in SECOND_CHECKS if rounds.affords(count - FEWEST_PAIRS))
            rounds.until(next(affordable, 0))
    except KeyboardInterrupt:
        is_interrupted = True
    point = judge(rounds.runs, wish.terms, value, other_results(rounds.printed))
    if not is_interrupted and rounds.fit >= 2 and _is_open(point):
        point = replace(point, notes=(*point.notes, _how_to_go_on(rounds, len(wish.values))))
    return point, is_interrupted


def _is_open(point: Point) -> bool:
    return point.outcome == "not_enough_evidence"


def _how_to_go_on(rounds: Rounds, values: int) -> str:
    if rounds.count >= min(SECOND_CHECKS):
        return (
            f"{rounds.count} runs of each variant were not enough: runs of the same variant differ "
            "too much, or the variants differ too little. Try a longer `--window`, or a "
            "node without other jobs."
        )
    wanted = FEWEST_PAIRS if rounds.count < FEWEST_PAIRS else max(SECOND_CHECKS)
    need_s = math.ceil(1.1 * values * wanted * rounds.mean_s)
    need = f"{need_s}s" if need_s < 100 else f"{math.ceil(need_s / 60)}min"
    return f"`--for {need}` gives {wanted} runs of each variant."


def crossing(points: Sequence[Point], swept: str) -> BreakEven | None:
    """Return the value from which on the larger allocation is faster, only by time.

    It is between the largest value at which the larger is slower and the next one at which it is
    faster, both beyond chance. Without two such values, return None.

    Args:
        points: by rising values.
        swept: name of what was swept.
    """
    known = [
        (point.value, point.comparison.speed)
        for point in points
        if point.comparison is not None and point.value is not None
    ]
    slower = [place for place, (_, speed) in enumerate(known) if speed.high < 1]
    begin = max(slower, default=len(known))
    for end in range(begin + 1, len(known)):
        if known[end][1].low > 1:
            at = equal_at([(value, speed.times) for value, speed in known[begin : end + 1]])
            return BreakEven(unit=swept, at=at, low=known[begin][0], high=known[end][0])
    return None
