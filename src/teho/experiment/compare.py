"""Run a program under several placements in turns, until it is clear which is worth it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec.structs import replace

from teho.config.privacy import masked_command
from teho.experiment.confidence import FEWEST_PAIRS, SECOND_LOOKS
from teho.experiment.outputs import other_results
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.rounds import Rounds, RunOnce
from teho.experiment.verdict import Terms, judge
from teho.model.compared import BreakEven, Compared, Contest, Point
from teho.units import format_count

__all__ = ["CompareRequest", "compare", "crossing", "summed_up", "terms_of"]


class CompareRequest(NamedTuple):
    """What is to be compared."""

    command: tuple[str, ...]
    placements: Sequence[Placement]
    """In their order in the table; all are told against the first."""
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
    wish: CompareRequest,
    id_: str,
    run_at: Callable[[float | None], RunOnce],
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Compared:
    """Run a program under each placement in turns, until the verdict is clear or the time is over.

    If a number is swept, each value gets an equal share of the time that is left. A
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
    """Return what points say together.

    Args:
        points: of rising values of what is swept; one where nothing is. Of the last one that could
            be compared is the verdict.
        swept: what; empty: nothing.
        about: the other fields of `Compared`.
    """
    told = _alike(points)
    last = told[-1] if told else points[-1]
    edge = crossing(told, swept) if swept else None
    beyond = next((point.value for point in points[points.index(last) + 1 :]), None)
    lost = f"; not to be compared at {swept} = {format_count(beyond)}" if beyond is not None else ""
    return Compared(
        outcome=last.outcome,
        verdict=_verdict(told or [last], edge, swept) + lost,
        swept=swept,
        points=tuple(points),
        break_even=edge,
        **about,
    )


def _alike(points: Sequence[Point]) -> list[Point]:
    """Return the points that answer the same question: GPUs against cores, where there is one.

    If memory ends, a GPU is out, and what is left there are cores among themselves.
    """
    mixed = [point for point in points if point.contest and _is_mixed(point.contest)]
    return mixed or [point for point in points if point.contest]


def _is_mixed(contest: Contest) -> bool:
    return contest.larger.partition(":")[0] != contest.smaller.partition(":")[0]


def _verdict(told: Sequence[Point], edge: BreakEven | None, swept: str) -> str:
    last = told[-1]
    at = f"{swept} = {format_count(last.value)}" if last.value is not None else ""
    if edge is None or last.contest is None:
        return f"At {at}: {last.verdict}" if at else last.verdict
    larger = next(one for one in last.variants if one.name == last.contest.larger)
    smaller = next(one for one in last.variants if one.name == last.contest.smaller)
    faster = f"{larger.words} {'is' if larger.words[:2] == '1 ' else 'are'} faster than"
    faster = f"{faster} {smaller.words}"
    near = [one for one in told if one.value is not None and one.value >= edge.low]
    pairs = {(one.contest.larger, one.contest.smaller) for one in near if one.contest}
    if len(pairs) > 1:  # at each value, the best of either
        noun = "GPUs" if larger.kind == "gpu" else "cores"
        than = "cores" if _is_mixed(last.contest) else "fewer"
        faster = f"{'' if than == 'cores' else 'more '}{noun} are faster than {than}"
    about = format_count(float(f"{edge.at:.2g}"))
    fast = f", {last.contest.speed.times:.2f} times as fast"
    worth = fast if last.outcome == "worth_it" and len(pairs) == 1 else f": {last.verdict}"
    return (
        f"From about {swept} = {about} on (between {format_count(edge.low)} and "
        f"{format_count(edge.high)}), {faster}; at {at}{worth}"
    )


def _compare_at(
    run: RunOnce,
    wish: CompareRequest,
    for_s: float,
    tell: Callable[[str], None],
    value: float | None,
    clock: Callable[[], float],
) -> tuple[Point, bool]:
    """Return what came of one value, and whether somebody ended it early.

    There are two looks at the figures, after three rounds and after as many of `SECOND_LOOKS` as
    the time allows, so that it does not go on until it pleases.
    """
    rounds = Rounds(run, wish.placements, for_s, tell, clock)
    try:
        _take_turns(rounds, FEWEST_PAIRS)
        if rounds.count == FEWEST_PAIRS and _is_open(judge(rounds.runs, wish.terms)):
            left = (look for look in SECOND_LOOKS if rounds.affords(look - FEWEST_PAIRS))
            _take_turns(rounds, next(left, 0))
    except KeyboardInterrupt:
        return judge(rounds.runs, wish.terms, value, other_results(rounds.printed)), True
    point = judge(rounds.runs, wish.terms, value, other_results(rounds.printed))
    if rounds.fit >= 2 and _is_open(point):
        more = _what_would_tell(rounds, len(wish.values))
        point = replace(point, notes=(*point.notes, more))
    return point, False


def _take_turns(rounds: Rounds, count: int) -> None:
    """Go on until there were so many rounds, or the time or the variants do not suffice."""
    while rounds.count < count and rounds.affords(1):
        rounds.round()
        if rounds.fit < 2:
            break


def _is_open(point: Point) -> bool:
    return point.outcome == "not_enough_evidence"


def _what_would_tell(rounds: Rounds, values: int) -> str:
    if rounds.count >= min(SECOND_LOOKS):
        return (
            f"{rounds.count} rounds were not enough: runs of the same variant differ too much, or "
            "it is a close call. A longer `--window` or a quieter node may help."
        )
    wanted = FEWEST_PAIRS if rounds.count < FEWEST_PAIRS else max(SECOND_LOOKS)
    need_s = math.ceil(1.1 * values * wanted * rounds.mean_s)
    need = f"{need_s}s" if need_s < 100 else f"{math.ceil(need_s / 60)}min"
    return f"`--for {need}` gives {wanted} rounds."


def crossing(points: Sequence[Point], swept: str) -> BreakEven | None:
    """Return from which value on the larger allocation is the faster one, by time alone.

    It lies between the largest value at which it is slower and the next one at which it is faster,
    each beyond chance, on a straight line in the logarithms; None if there are no two such.

    Args:
        points: of rising values.
        swept: what was swept.
    """
    known = [
        (point.value, point.contest.speed)
        for point in points
        if point.contest is not None and point.value is not None
    ]
    slower = [place for place, (_, speed) in enumerate(known) if speed.high < 1]
    faster = [place for place, (_, speed) in enumerate(known) if speed.low > 1]
    begin = max(slower, default=len(known))
    end = next((place for place in faster if place > begin), None)
    if end is None:
        return None
    for (low, before), (high, after) in pairwise(known[begin : end + 1]):
        if before.times < 1 <= after.times:
            share = math.log(before.times) / math.log(before.times / after.times)
            at = low * (high / low) ** share
            return BreakEven(unit=swept, at=at, low=known[begin][0], high=known[end][0])
    return None
