"""The verdict of a comparison: is the larger allocation fast enough for its cost?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from teho.experiment.confidence import FEWEST_PAIRS, gain_of
from teho.experiment.measure import Measure, measure_of
from teho.experiment.placement import Placement
from teho.experiment.scaling import EFFICIENT_SPEEDUP
from teho.explain.wording import joined
from teho.model.compared import BreakEven, Outcome, PairComparison, Point, Sample, Variant
from teho.units import counted, format_duration

__all__ = ["Terms", "idle_gpus", "judge", "verb_of"]

_ALIKE = 0.05
"""Speeds that differ by less count as equal."""


class Terms(NamedTuple):
    """What an hour costs, as far as it is known."""

    hourly: Mapping[str, float]
    """Variant -> cost, all in the same unit."""
    same_cost_cores: Mapping[int, int]
    """Number of GPUs -> number of cores that cost the same."""


def judge(
    runs: Mapping[Placement, Sequence[Sample]],
    terms: Terms,
    value: float | None = None,
    notes: Sequence[str] = (),
    unrun: str = "the time limit was too short for this run",
) -> Point:
    """Return the verdict on some runs.

    Args:
        runs: of each placement, in the order of the rounds.
        terms: prices.
        value: of what is swept.
        notes: sentences to keep with the verdict.
        unrun: why a placement has no runs.
    """
    measure = _measure(runs.values())
    variants = [_variant(place, own, measure, terms, unrun) for place, own in runs.items()]
    fit = [one for one in variants if not one.why]
    variants = [  # all are compared with the first
        one
        if one.why or one is fit[0]
        else msgspec.structs.replace(one, speed=gain_of(fit[0].rates, one.rates))
        for one in variants
    ]
    comparison = _comparison(fit, terms)
    breaks: tuple[BreakEven, ...] = ()
    notes = [*notes, *_remarks(variants)]
    if comparison is None:
        outcome: Outcome = "not_enough_evidence"
        verdict = f"Not enough evidence: {_too_little(variants)}"
    else:
        by_name = {one.name: one for one in fit}
        larger, smaller = by_name[comparison.larger], by_name[comparison.smaller]
        outcome, verdict = _decide(comparison, larger, smaller)
        notes += _small_print(comparison, larger, smaller, measure, outcome)
        breaks = _break_even(larger, smaller, measure)
    return Point(
        value=value,
        outcome=outcome,
        verdict=verdict,
        measure=measure.by,
        unit=measure.unit,
        variants=tuple(variants),
        comparison=comparison,
        break_even=breaks,
        notes=tuple(notes),
    )


# ---- what is measured ----


def _measure(runs: Collection[Sequence[Sample]]) -> Measure:
    sizes = {sample.samples_per_step for own in runs for sample in own if not sample.why}
    # If the program gives a GPU larger batches, steps cannot be compared.
    differ = None not in sizes and len(sizes) > 1
    return measure_of(runs)._replace(unit="sample") if differ else measure_of(runs)


def _variant(
    place: Placement, samples: Sequence[Sample], measure: Measure, terms: Terms, unrun: str
) -> Variant:
    failed = [sample for sample in samples if sample.why]
    why = next(filter(None, map(measure.why_not, samples)), "") if samples else unrun
    if failed:
        often = f" in {len(failed)} of {len(samples)} runs" if len(samples) > 1 else ""
        why = f"{failed[0].why}{often}"
    return Variant(
        name=place.name,
        cores=len(place.cores),
        gpus=len(place.gpus),
        gpu_name=place.gpus[0].name if place.gpus else "",
        samples=tuple(samples),
        why=why,
        rates=() if why else tuple(measure.rate(sample) or 0.0 for sample in samples),
        hourly_cost=terms.hourly.get(place.name),
    )


# ---- which variants are compared ----


def _comparison(fit: Sequence[Variant], terms: Terms) -> PairComparison | None:
    cpus = sorted((one for one in fit if one.kind == "cpu"), key=_size)
    gpus = sorted((one for one in fit if one.kind == "gpu"), key=_size)
    if len(fit) < 2:
        return None
    if cpus and gpus:
        # Of the variants with cores, compare the smallest that is about as fast as the fastest.
        fast = max(map(_pace, cpus))
        smaller = next(one for one in cpus if _pace(one) >= (1 - _ALIKE) * fast)
        larger = _worthiest(gpus)
    else:
        smaller, *others = cpus or gpus
        larger = _worthiest(others)
    speed = gain_of(smaller.rates, larger.rates)
    if speed is None:
        return None
    prices = larger.hourly_cost, smaller.hourly_cost
    cores = terms.same_cost_cores.get(larger.gpus) if cpus and gpus else None
    times, is_measured = _on_cores(cores, cpus, smaller) if cores else (None, False)
    return PairComparison(
        larger=larger.name,
        smaller=smaller.name,
        speed=speed,
        price=prices[0] / prices[1] if prices[0] and prices[1] else None,
        same_cost_cores=cores,
        same_cost_speed=speed.times / times if times else None,
        same_cost_is_measured=is_measured,
    )


def _worthiest(variants: Sequence[Variant]) -> Variant:
    """Return the variant that is fastest for its size. The program may use one of many GPUs."""
    return max(variants, key=lambda one: _pace(one) / _needed_for(_size(one)))


def _needed_for(times: float) -> float:
    """Return the speed-up that this many times the cores or GPUs must give."""
    return math.pow(EFFICIENT_SPEEDUP, math.log2(times))


def _size(variant: Variant) -> int:
    return int(variant.name.partition(":")[2])


def _pace(variant: Variant) -> float:
    return median(variant.rates)


def verb_of(count: int, one: str = "is", several: str = "are") -> str:
    """Return the form of a verb that fits a number of cores or GPUs."""
    return one if count == 1 else several


def _on_cores(count: int, cpus: Sequence[Variant], smaller: Variant) -> tuple[float, bool]:
    """Return the speed of this number of cores, relative to the smaller, and if it was measured.

    If it was not, the result is the most that is possible: the best use of a core, times the
    number of cores.
    """
    if same := next((one for one in cpus if one.cores == count), None):
        return _pace(same) / _pace(smaller), True
    best = max(_pace(one) / one.cores for one in cpus)
    return best * count / _pace(smaller), False


# ---- the verdict ----


class _Bar(NamedTuple):
    """The speed that the larger variant needs, relative to the smaller."""

    alike: float
    """At this speed, both are equally good; 0: at none."""
    needed: float
    """From this speed on, the larger one is the better choice."""
    why: str = ""


def _decide(comparison: PairComparison, larger: Variant, smaller: Variant) -> tuple[Outcome, str]:
    speed, bar = comparison.speed, _bar(comparison, larger, smaller)
    big, small, are = larger.words, smaller.words, verb_of(_size(larger))
    interval = f"(95 % confidence: {speed.low:.2f} to {speed.high:.2f})"
    fast = f"{speed.times:.2f} times as fast as {small} {interval}{bar.why}"
    if (1 - _ALIKE) * bar.alike < speed.low and speed.high < (1 + _ALIKE) * bar.alike:
        return "no_difference", f"No difference: {big} {are} {fast}"
    if speed.low >= bar.needed:
        return "worth_it", f"Use {big}: {verb_of(_size(larger), 'it is', 'they are')} {fast}"
    if speed.high < bar.needed:
        slow = f"{speed.times:.2f} times as fast {interval}{bar.why}"
        enough = f"{small} {verb_of(_size(smaller))} enough"
        return "not_worth_it", f"{enough}: {big} {are} {slow}"
    return "not_enough_evidence", f"Not enough evidence: {big} {are} {fast}"


def _bar(comparison: PairComparison, larger: Variant, smaller: Variant) -> _Bar:
    if comparison.same_cost_speed is not None and comparison.same_cost_cores:
        # The GPUs must be as fast as the cores of the same cost.
        ratio = comparison.speed.times / comparison.same_cost_speed
        most = "" if comparison.same_cost_is_measured else "at most "
        count = comparison.same_cost_cores
        cores = f"{count:,} core{'s' if count > 1 else ''}"
        other = "" if count == _size(smaller) else f" as {smaller.words}"
        return _priced(
            ratio,
            f". For the same price, you get {cores}, which would be {most}{ratio:.3g} times as "
            f"fast{other}",
        )
    if larger.kind == smaller.kind:
        needed = _needed_for(_size(larger) / _size(smaller))
        is_short = comparison.speed.low < needed
        return _Bar(1.0, needed, f", but a speed-up of {needed:.3g} is needed" if is_short else "")
    if comparison.price is not None:
        return _priced(comparison.price, f", at {comparison.price:.3g} times the price")
    return _Bar(1.0, 1 + _ALIKE)


def _priced(times: float, why: str) -> _Bar:
    """Return the bar for this many times the price: the same work must not cost more."""
    return _Bar(1.0 if abs(times - 1) < _ALIKE else 0.0, times, why)


def _small_print(
    comparison: PairComparison,
    larger: Variant,
    smaller: Variant,
    measure: Measure,
    outcome: Outcome,
) -> list[str]:
    notes = []
    imported = median(sample.import_s or 0.0 for sample in smaller.samples)
    took = median(sample.elapsed_s for sample in smaller.samples)
    # Half of a program below a second is the start and end of the interpreter.
    if measure.by == "time" and imported > took / (4 if took < 1 else 2):
        notes.append(
            f"Imports took {format_duration(imported)} of the run time of {format_duration(took)}: "
            "the work is too small to compare cores and GPUs."
        )
    if larger.kind == smaller.kind:
        return notes
    if comparison.price is None and not comparison.same_cost_cores:
        notes.append(
            "Teho does not know what a GPU costs here, compared with a core. So the verdict is "
            "only about time. Name the cluster with `--site CLUSTER`, or give the price of a GPU "
            "with `--gpu-cost CORES`: the number of cores that cost the same as one GPU."
        )
    elif outcome == "not_worth_it" and comparison.speed.low >= 1 + _ALIKE:
        notes.append(
            f"The price decides: if only the time counts, {larger.words} "
            f"{verb_of(_size(larger))} the faster choice."
        )
    return notes


def _remarks(variants: Sequence[Variant]) -> list[str]:
    """Return sentences about what the verdict does not cover."""
    gpus = [one for one in variants if one.kind == "gpu"]
    cpus = [one for one in variants if one.kind == "cpu"]
    idle = [idle_gpus(one.name, one.gpus, one.samples) for one in gpus if not one.why]
    notes = [note for note in idle if note]
    out = [one.name for one in gpus if one.why]
    if out and len(out) == len(gpus) and any(not one.why for one in cpus):
        notes.append(f"{joined(out)} could not be measured: this verdict covers only CPU cores.")
    if cpus and all(one.why and one.samples for one in cpus) and any(not one.why for one in gpus):
        notes.append(
            "The program could not be measured without a GPU. If the program asks for a GPU by "
            "name, as PyTorch's `.cuda()` does, use `.to(device)` instead. If there is no GPU, set "
            "`device` to the CPU."
        )
    return notes


def idle_gpus(name: str, gpus: int, samples: Sequence[Sample]) -> str:
    """Return a sentence about GPUs that the program used in none of its runs; empty: none."""
    idle = [sample.idle_gpus for sample in samples]
    least = min((count for count in idle if count is not None), default=0)
    if not least or None in idle:
        return ""
    if least == gpus:
        return (
            f"On {name}, no GPU was ever busy: the program does not seem to use a GPU, so this "
            f"comparison does not show what a GPU could do."
        )
    return f"Of the {gpus} GPUs of {name}, {least} {verb_of(least, 'was', 'were')} never busy."


def _too_little(variants: Sequence[Variant]) -> str:
    fit = [one for one in variants if not one.why]
    if not fit:
        return "none of the variants could be measured"
    if len(fit) == 1:
        return f"only {fit[0].words} could be measured"
    fewest = min(len(one.rates) for one in fit)
    slowest, fastest = min(fit, key=_pace), max(fit, key=_pace)
    return (
        f"each variant has only {counted(fewest, 'run')}, but {FEWEST_PAIRS} are needed; "
        f"{fastest.words} {verb_of(_size(fastest), 'was', 'were')} "
        f"{_pace(fastest) / _pace(slowest):.2f} times as fast as {slowest.words}"
    )


# ---- from which step on the larger is ahead ----


def _break_even(larger: Variant, smaller: Variant, measure: Measure) -> tuple[BreakEven, ...]:
    """Return the step from which on the larger variant has made up for its slower start.

    `n = (fixed_larger - fixed_smaller) / (1 / pace_smaller - 1 / pace_larger)`, for each round.
    The interval goes from the lowest to the highest of them.
    """
    pace = measure._replace(by="pace")
    found, epochs = [], []
    for big, small in zip(larger.samples, smaller.samples, strict=False):
        fast, slow = pace.rate(big), pace.rate(small)
        if not fast or not slow or big.fixed_s is None or small.fixed_s is None:
            continue
        later_s = big.fixed_s - small.fixed_s
        if fast <= slow or later_s <= 0 or pace.why_not(big) or pace.why_not(small):
            return ()
        found.append(later_s / (1 / slow - 1 / fast))
        if small.steps_per_epoch:
            each = small.samples_per_step if pace.unit == "sample" else 1.0
            epochs.append(small.steps_per_epoch * (each or 1.0))
    if len(found) < FEWEST_PAIRS:
        return ()
    steps = BreakEven(unit=pace.unit, at=median(found), low=min(found), high=max(found))
    if not epochs:
        return (steps,)
    long = median(epochs)
    return (
        steps,
        BreakEven(unit="epoch", at=steps.at / long, low=steps.low / long, high=steps.high / long),
    )
