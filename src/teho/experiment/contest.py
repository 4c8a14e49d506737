"""From rounds of runs to a verdict: is the larger allocation worth it?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from teho.experiment.confidence import FEWEST_PAIRS, SECOND_LOOKS, first_look, second_look
from teho.experiment.placement import Placement
from teho.model.compared import BreakEven, Contest, Outcome, Point, Sample, Variant
from teho.model.tuned import Gain

__all__ = ["PAYS", "Terms", "judge"]

PAYS = 1.5
"""So many times as fast twice the cores or GPUs must be to be worth it (docs/scale.md has the
source)."""
_ALIKE = 0.05
"""Speeds this near to each other make no difference to anybody."""
_LOOKS = (FEWEST_PAIRS, FEWEST_PAIRS + 1, *sorted(SECOND_LOOKS))


class Terms(NamedTuple):
    """What an hour costs, as far as it is known."""

    hourly: Mapping[str, float]
    """Variant -> cost, in one unit for all of them."""
    same_cost_cores: Mapping[int, int]
    """GPUs -> cores that cost as much."""


def judge(
    runs: Mapping[Placement, Sequence[Sample]],
    terms: Terms,
    value: float | None = None,
    notes: Sequence[str] = (),
) -> Point:
    """Return what the runs say.

    Args:
        runs: of each placement, in the order of the rounds.
        terms: prices.
        value: of what is swept.
        notes: sentences to keep with it.
    """
    measure, unit, why = _measure([own for own in runs.values() if _is_sound(own)])
    variants = [_variant(place, own, measure, why, terms) for place, own in runs.items()]
    fit = [one for one in variants if not one.why]
    variants = [  # the first is what all are held against
        one if one.why or one is fit[0] else msgspec.structs.replace(one, speed=_gain(fit[0], one))
        for one in variants
    ]
    contest = _contest(fit, terms)
    if contest is None:
        outcome: Outcome = "not_enough_evidence"
        verdict = f"Not enough evidence: {_too_little(variants)}"
    else:
        by_name = {one.name: one for one in fit}
        larger, smaller = by_name[contest.larger], by_name[contest.smaller]
        outcome, verdict = _decide(contest, larger, smaller)
        notes = [*notes, *_small_print(contest, larger, smaller, measure)]
    return Point(
        value=value,
        outcome=outcome,
        verdict=verdict,
        measure=measure,
        unit=unit,
        variants=tuple(variants),
        contest=contest,
        break_even=_break_even(contest, fit, unit) if contest else (),
        notes=tuple(notes),
    )


# ---- what is measured ----


def _is_sound(samples: Sequence[Sample]) -> bool:
    return bool(samples) and not any(sample.why for sample in samples)


def _measure(
    sound: Sequence[Sequence[Sample]],
) -> tuple[Literal["time", "pace"], str, str]:
    """Return how all can be held against each other, in which unit, and what lacks elsewhere."""
    every = [sample for own in sound for sample in own]
    units = {sample.unit for sample in every if sample.steps_per_s is not None}
    unit = units.pop() if len(units) == 1 else ""
    if all(sample.is_whole for sample in every):
        return "time", unit, ""
    if units:
        return "pace", "", "it counts other steps than the rest"
    return "pace", unit, "it ended before its pace was known, and others did not end"


def _variant(
    place: Placement,
    samples: Sequence[Sample],
    measure: Literal["time", "pace"],
    why: str,
    terms: Terms,
) -> Variant:
    failed = [sample for sample in samples if sample.why]
    rates: list[float] = []
    if failed:
        often = f" in {len(failed)} of {len(samples)} runs" if len(samples) > 1 else ""
        why = f"{failed[0].why}{often}"
    elif measure == "time":
        rates, why = [1 / sample.elapsed_s for sample in samples], ""
    else:
        rates = [sample.steps_per_s for sample in samples if sample.steps_per_s is not None]
        why = why if len(rates) < len(samples) else ""
    if not samples:
        why = "there was no time for it"
    return Variant(
        name=place.name,
        cores=len(place.cores),
        gpus=len(place.gpus),
        gpu_name=place.gpus[0].name if place.gpus else "",
        samples=tuple(samples),
        why=why,
        rates=() if why else tuple(rates),
        hourly_cost=terms.hourly.get(place.name),
    )


def _gain(before: Variant, after: Variant) -> Gain | None:
    """Return how many times as fast one is; None where too few runs took turns."""
    pairs = list(zip(before.rates, after.rates, strict=False))
    count = max((look for look in _LOOKS if look <= len(pairs)), default=0)
    if not count:
        return None
    return second_look(pairs[:count]) if count in SECOND_LOOKS else first_look(pairs[:count])


# ---- who is held against whom ----


def _contest(fit: Sequence[Variant], terms: Terms) -> Contest | None:
    cpus = [one for one in fit if one.kind == "cpu"]
    gpus = [one for one in fit if one.kind == "gpu"]
    if cpus and gpus:
        smaller, larger = max(cpus, key=_pace), max(gpus, key=_pace)
    elif len(fit) > 1:
        smaller, *others = sorted(fit, key=_size)
        larger = max(others, key=_pace)
    else:
        return None
    speed = _gain(smaller, larger)
    if speed is None:
        return None
    prices = larger.hourly_cost, smaller.hourly_cost
    cores = terms.same_cost_cores.get(larger.gpus) if gpus else None
    against, is_measured = _same_cost(larger, cpus, cores) if cores else (None, False)
    return Contest(
        larger=larger.name,
        smaller=smaller.name,
        speed=speed,
        price=prices[0] / prices[1] if prices[0] and prices[1] else None,
        same_cost_cores=cores,
        same_cost_speed=against,
        same_cost_is_measured=is_measured,
    )


def _size(variant: Variant) -> int:
    return variant.gpus if variant.kind == "gpu" else variant.cores


def _pace(variant: Variant) -> float:
    return median(variant.rates)


def _same_cost(gpu: Variant, cpus: Sequence[Variant], cores: int) -> tuple[float | None, bool]:
    """Return how many times as fast as so many cores the GPUs are, and whether that is measured.

    Where so many were not to be had, no program is faster on them than its best use of a core
    times their number: what is returned then is the least.
    """
    if not cpus:
        return None, False
    if same := next((one for one in cpus if one.cores == cores), None):
        return _pace(gpu) / _pace(same), True
    best = max(_pace(one) / one.cores for one in cpus)
    return _pace(gpu) / (best * cores), False


# ---- the verdict ----


def _decide(contest: Contest, larger: Variant, smaller: Variant) -> tuple[Outcome, str]:
    speed, big, small = contest.speed, larger.words, smaller.words
    are = "is" if _size(larger) == 1 else "are"
    interval = f"(95 %: {speed.low:.2f} to {speed.high:.2f})"
    fast = f"{big} {are} {speed.times:.2f} times as fast as {small} {interval}"
    enough = f"{small} {'is' if _size(smaller) == 1 else 'are'} enough"
    if speed.low > 1 - _ALIKE and speed.high < 1 + _ALIKE:
        return "no_difference", f"No difference: {fast}"
    if speed.high < 1 + _ALIKE:
        return "not_worth_it", f"{enough}: {fast}"
    needed, why = _needed(contest, larger, smaller)
    if speed.low >= needed:
        return "worth_it", f"{big} {are} worth it: {fast}{why}"
    if speed.high < needed:
        return "not_worth_it", f"{enough}: {fast}{why}"
    return "not_enough_evidence", f"Not enough evidence, `--for` gives more: {fast}{why}"


def _needed(contest: Contest, larger: Variant, smaller: Variant) -> tuple[float, str]:
    """Return how many times as fast the larger one must be to be worth it, and why."""
    if contest.same_cost_speed is not None and contest.same_cost_cores:
        # As many times as the cores of the same cost would be, at the most.
        ratio = contest.speed.times / contest.same_cost_speed
        cores = contest.same_cost_cores
        how = "" if contest.same_cost_is_measured else ", at the most"
        return ratio, f"; {cores} cores, which cost the same, are {ratio:.1f} times{how}"
    if contest.price is not None and larger.kind != smaller.kind:
        return contest.price, f", at {contest.price:.1f} times the price"
    if larger.kind != smaller.kind:
        return 1 + _ALIKE, ""
    doublings = math.log2(_size(larger) / _size(smaller))
    needed = PAYS**doublings
    return needed, "" if contest.speed.low >= needed else f", which should be {needed:.2g} times"


def _small_print(contest: Contest, larger: Variant, smaller: Variant, measure: str) -> list[str]:
    notes = []
    imported = [sample.import_s or 0.0 for sample in smaller.samples]
    took = median(sample.elapsed_s for sample in smaller.samples)
    if measure == "time" and median(imported) > took / 2:
        notes.append(
            f"Of its {took:.2g} s, {median(imported):.2g} s are imports: the work is too small for "
            "cores or GPUs to matter."
        )
    if larger.kind != smaller.kind and contest.price is None and not contest.same_cost_cores:
        notes.append(
            "What a GPU costs beside a core is not known here: the verdict is of time alone. "
            "`--site CLUSTER` or `--gpu-cost CORES` says it."
        )
    return notes


def _too_little(variants: Sequence[Variant]) -> str:
    fit = [one for one in variants if not one.why]
    if not fit:
        return "none of the variants could be measured"
    if len(fit) == 1:
        return f"only {fit[0].words} could be measured"
    fewest = min(len(one.rates) for one in fit)
    runs = f"{fewest} run{'s' if fewest != 1 else ''}"
    fastest = max(fit, key=_pace)
    slowest = min(fit, key=_pace)
    return (
        f"{runs} of each, {FEWEST_PAIRS} are needed, and `--for` gives more; "
        f"{fastest.words} {'was' if _size(fastest) == 1 else 'were'} "
        f"{_pace(fastest) / _pace(slowest):.2g} times as fast as {slowest.words}"
    )


# ---- from where on ----


def _break_even(contest: Contest, fit: Sequence[Variant], unit: str) -> tuple[BreakEven, ...]:
    """Return from which step on the larger one has made up for what its start takes longer.

    `n = (fixed_larger - fixed_smaller) / (1 / pace_smaller - 1 / pace_larger)`, of each round;
    from the lowest of them to the highest is the interval.
    """
    by_name = {one.name: one for one in fit}
    larger, smaller = by_name[contest.larger], by_name[contest.smaller]
    found, epochs = [], []
    for big, small in zip(larger.samples, smaller.samples, strict=False):
        known = big.steps_per_s, small.steps_per_s, big.fixed_s, small.fixed_s
        if None in known:
            continue
        big_pace, small_pace, big_s, small_s = (value or 0.0 for value in known)
        if big_pace <= small_pace or big_s <= small_s:
            return ()
        found.append((big_s - small_s) / (1 / small_pace - 1 / big_pace))
        epochs += [small.steps_per_epoch] if small.steps_per_epoch else []
    if len(found) < FEWEST_PAIRS or not unit:
        return ()
    steps = BreakEven(unit=unit, at=median(found), low=min(found), high=max(found))
    if not epochs:
        return (steps,)
    long = median(epochs)
    return (
        steps,
        BreakEven(unit="epoch", at=steps.at / long, low=steps.low / long, high=steps.high / long),
    )
