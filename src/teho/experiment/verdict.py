"""From rounds of runs to a verdict: is the larger allocation worth it?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from teho.experiment.confidence import FEWEST_PAIRS, SECOND_LOOKS, first_look, second_look
from teho.experiment.placement import Placement
from teho.experiment.scaling import PAYS
from teho.explain.wording import joined
from teho.model.compared import BreakEven, Contest, Outcome, Point, Sample, Variant
from teho.model.tuned import Gain
from teho.units import format_duration

__all__ = ["Terms", "idle_gpus", "judge", "measure_of"]

_ALIKE = 0.05
"""Speeds this near to each other make no difference to anybody."""
_LACKING = (
    "it ended before its pace was known, and others did not end: `--full` compares whole runs"
)
_LOOKS = (FEWEST_PAIRS, FEWEST_PAIRS + 1, *sorted(SECOND_LOOKS))


class Terms(NamedTuple):
    """What an hour costs, as far as it is known."""

    hourly: Mapping[str, float]
    """Variant -> cost, in one unit for all of them."""
    same_cost_cores: Mapping[int, int]
    """GPUs -> cores that cost as much."""


class _Measure(NamedTuple):
    """How all variants are compared with each other."""

    by: Literal["time", "pace"]
    unit: str
    """`step`, `batch`, or `sample` where steps are of different sizes."""
    lacking: str

    def rate(self, sample: Sample) -> float | None:
        """Return how much of the work was done a second; None if that was not seen."""
        if self.by == "time":
            return 1 / sample.elapsed_s
        each = sample.samples_per_step if self.unit == "sample" else 1.0
        return each and sample.steps_per_s and each * sample.steps_per_s

    def why_not(self, samples: Sequence[Sample]) -> str:
        """Say why a variant has no place among the others; empty if it has one."""
        if self.by == "pace" and any(self.rate(sample) is None for sample in samples):
            return self.lacking
        strange = {sample.unit for sample in samples} - {self.unit}
        if self.by == "pace" and self.unit != "sample" and strange:
            return f"its steps were counted as {strange.pop()}, the others' as {self.unit}"
        return ""


def judge(
    runs: Mapping[Placement, Sequence[Sample]],
    terms: Terms,
    value: float | None = None,
    notes: Sequence[str] = (),
    unrun: str = "the time was not enough for it",
) -> Point:
    """Return what the runs say.

    Args:
        runs: of each placement, in the order of the rounds.
        terms: prices.
        value: of what is swept.
        notes: sentences to keep with it.
        unrun: why a placement has no runs.
    """
    measure = _measure(runs.values())
    variants = [_variant(place, own, measure, terms, unrun) for place, own in runs.items()]
    fit = [one for one in variants if not one.why]
    variants = [  # the first is what all are compared with
        one if one.why or one is fit[0] else msgspec.structs.replace(one, speed=_gain(fit[0], one))
        for one in variants
    ]
    contest = _contest(fit, terms)
    breaks: tuple[BreakEven, ...] = ()
    notes = [*notes, *_remarks(variants)]
    if contest is None:
        outcome: Outcome = "not_enough_evidence"
        verdict = f"Not enough evidence: {_too_little(variants)}"
    else:
        by_name = {one.name: one for one in fit}
        larger, smaller = by_name[contest.larger], by_name[contest.smaller]
        outcome, verdict = _decide(contest, larger, smaller)
        notes += _small_print(contest, larger, smaller, measure, outcome)
        breaks = _break_even(larger, smaller, measure)
    return Point(
        value=value,
        outcome=outcome,
        verdict=verdict,
        measure=measure.by,
        unit=measure.unit,
        variants=tuple(variants),
        contest=contest,
        break_even=breaks,
        notes=tuple(notes),
    )


# ---- what is measured ----


def measure_of(
    runs: Iterable[Sequence[Sample]],
) -> tuple[Literal["time", "pace"], str, str]:
    """Return how all can be compared with each other, in which unit, and what lacks elsewhere.

    Args:
        runs: of each variant; one of which a run says nothing does not count.
    """
    sound = [own for own in runs if not any(sample.why for sample in own)]
    every = [sample for own in sound for sample in own]
    units = [sample.unit for sample in every if sample.steps_per_s is not None]
    unit = units[0] if units else ""
    if all(sample.is_whole for sample in every):
        return "time", unit, ""
    return "pace", unit, _LACKING


def _measure(runs: Collection[Sequence[Sample]]) -> _Measure:
    by, unit, lacking = measure_of(runs)
    sizes = {sample.samples_per_step for own in runs for sample in own if not sample.why}
    # The program may give a GPU larger batches: steps do not compare then.
    return _Measure(by, "sample" if None not in sizes and len(sizes) > 1 else unit, lacking)


def _variant(
    place: Placement, samples: Sequence[Sample], measure: _Measure, terms: Terms, unrun: str
) -> Variant:
    failed = [sample for sample in samples if sample.why]
    if not samples:
        why = unrun
    elif failed:
        often = f" in {len(failed)} of {len(samples)} runs" if len(samples) > 1 else ""
        why = f"{failed[0].why}{often}"
    else:
        why = measure.why_not(samples)
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


def _gain(before: Variant, after: Variant) -> Gain | None:
    """Return how many times as fast one is; None if too few runs took turns."""
    pairs = list(zip(before.rates, after.rates, strict=False))
    count = max((look for look in _LOOKS if look <= len(pairs)), default=0)
    if not count:
        return None
    return second_look(pairs[:count]) if count in SECOND_LOOKS else first_look(pairs[:count])


# ---- who is compared with whom ----


def _contest(fit: Sequence[Variant], terms: Terms) -> Contest | None:
    cpus = sorted((one for one in fit if one.kind == "cpu"), key=_size)
    gpus = sorted((one for one in fit if one.kind == "gpu"), key=_size)
    if len(fit) < 2:
        return None
    if cpus and gpus:
        # Cores that add nothing are not compared with anybody; those that add little are.
        fast = max(map(_pace, cpus))
        smaller = next(one for one in cpus if _pace(one) >= (1 - _ALIKE) * fast)
        larger = _worthiest(gpus)
    else:
        smaller, *others = cpus or gpus
        larger = _worthiest(others)
    speed = _gain(smaller, larger)
    if speed is None:
        return None
    prices = larger.hourly_cost, smaller.hourly_cost
    cores = terms.same_cost_cores.get(larger.gpus) if cpus and gpus else None
    times, is_measured = _on_cores(cores, cpus, smaller) if cores else (None, False)
    return Contest(
        larger=larger.name,
        smaller=smaller.name,
        speed=speed,
        price=prices[0] / prices[1] if prices[0] and prices[1] else None,
        same_cost_cores=cores,
        same_cost_speed=speed.times / times if times else None,
        same_cost_is_measured=is_measured,
    )


def _worthiest(variants: Sequence[Variant]) -> Variant:
    """Return the one that makes most of its size; of many GPUs, the program may use one."""
    return max(variants, key=lambda one: _pace(one) / _needed_for(_size(one)))


def _needed_for(times: float) -> float:
    """Return how many times as fast so many times the cores or GPUs must be to be worth it."""
    return math.pow(PAYS, math.log2(times))


def _size(variant: Variant) -> int:
    return int(variant.name.partition(":")[2])


def _pace(variant: Variant) -> float:
    return median(variant.rates)


def _on_cores(count: int, cpus: Sequence[Variant], smaller: Variant) -> tuple[float, bool]:
    """Return how many times as fast so many cores are as the smaller one; whether it is measured.

    If so many were not to be had, no program is faster on them than its best use of a core
    times their number: what is returned then is the most.
    """
    if same := next((one for one in cpus if one.cores == count), None):
        return _pace(same) / _pace(smaller), True
    best = max(_pace(one) / one.cores for one in cpus)
    return best * count / _pace(smaller), False


# ---- the verdict ----


class _Bar(NamedTuple):
    """How many times as fast the larger one must be."""

    alike: float
    """To make no difference; 0: it always makes one,"""
    needed: float
    """and to be worth it."""
    why: str = ""


def _decide(contest: Contest, larger: Variant, smaller: Variant) -> tuple[Outcome, str]:
    speed, bar = contest.speed, _bar(contest, larger, smaller)
    big, small = larger.words, smaller.words
    are = "is" if _size(larger) == 1 else "are"
    interval = f"(95 %: {speed.low:.2f} to {speed.high:.2f})"
    fast = f"{speed.times:.2f} times as fast as {small} {interval}{bar.why}"
    if (1 - _ALIKE) * bar.alike < speed.low and speed.high < (1 + _ALIKE) * bar.alike:
        return "no_difference", f"No difference: {big} {are} {fast}"
    if speed.low >= bar.needed:
        return "worth_it", f"{big} {are} worth it: {fast}"
    if speed.high < bar.needed:
        enough = f"{small} {'is' if _size(smaller) == 1 else 'are'} enough"
        slow = f"{speed.times:.2f} times as fast {interval}{bar.why}"
        return "not_worth_it", f"{enough}: {big} {are} {slow}"
    return "not_enough_evidence", f"Not enough evidence: {big} {are} {fast}"


def _bar(contest: Contest, larger: Variant, smaller: Variant) -> _Bar:
    if contest.same_cost_speed is not None and contest.same_cost_cores:
        # As many times as the cores of the same cost would be.
        ratio = contest.speed.times / contest.same_cost_speed
        most = "" if contest.same_cost_is_measured else ", at most"
        cores = f"{contest.same_cost_cores:,} core{'s' if contest.same_cost_cores > 1 else ''}"
        return _priced(ratio, f"; for the same cost, {cores} give {ratio:.3g} times{most}")
    if larger.kind == smaller.kind:
        needed = _needed_for(_size(larger) / _size(smaller))
        short = contest.speed.low < needed
        return _Bar(1.0, needed, f", and should be {needed:.3g} times" if short else "")
    if contest.price is not None:
        return _priced(contest.price, f", at {contest.price:.3g} times the price")
    return _Bar(1.0, 1 + _ALIKE)


def _priced(times: float, why: str) -> _Bar:
    """Return the bar of what costs so many times as much: the same work must not cost more."""
    return _Bar(1.0 if abs(times - 1) < _ALIKE else 0.0, times, why)


def _small_print(
    contest: Contest, larger: Variant, smaller: Variant, measure: _Measure, outcome: Outcome
) -> list[str]:
    notes = []
    imported = median(sample.import_s or 0.0 for sample in smaller.samples)
    took = median(sample.elapsed_s for sample in smaller.samples)
    # Half of a program below a second is the interpreter's own start and end.
    if measure.by == "time" and imported > took / (4 if took < 1 else 2):
        notes.append(
            f"Of its {format_duration(took)}, {format_duration(imported)} are imports: the work is "
            "too small for cores or GPUs to matter."
        )
    if larger.kind == smaller.kind:
        return notes
    if contest.price is None and not contest.same_cost_cores:
        notes.append(
            "What a GPU costs beside a core is not known here: the verdict is only about time. "
            "`--site CLUSTER` or `--gpu-cost CORES` says it."
        )
    elif outcome == "not_worth_it" and contest.speed.low >= 1 + _ALIKE:
        notes.append(
            f"The price decides: if only the time counts, {larger.words} "
            f"{'is' if _size(larger) == 1 else 'are'} the faster choice."
        )
    return notes


def _remarks(variants: Sequence[Variant]) -> list[str]:
    """Say what must not be concluded."""
    gpus = [one for one in variants if one.kind == "gpu"]
    told = [idle_gpus(one.name, one.gpus, one.samples) for one in gpus if not one.why]
    notes = [note for note in told if note]
    out = [one.name for one in gpus if one.why]
    if out and len(out) == len(gpus) and any(not one.why for one in variants):
        notes.append(f"Of {joined(out)} nothing is known: this verdict covers CPU cores only.")
    cpus = [one for one in variants if one.kind == "cpu"]
    if cpus and all(one.why and one.samples for one in cpus) and any(not one.why for one in gpus):
        notes.append(
            "Without a GPU nothing could be measured: a program that asks for one by name, as "
            "PyTorch's `.cuda()` does, cannot run on cores. `.to(device)` does, with `device` the "
            "CPU where there is no GPU."
        )
    return notes


def idle_gpus(name: str, gpus: int, samples: Sequence[Sample]) -> str:
    """Say which GPUs of a variant the program left alone in each of its runs; empty: none."""
    idle = [sample.idle_gpus for sample in samples]
    least = min((count for count in idle if count is not None), default=0)
    if not least or None in idle:
        return ""
    if least == gpus:
        return (
            f"On {name} no GPU was ever seen busy: the program does not seem to use one, "
            "and nothing is said of what a GPU could do for it."
        )
    are = "was" if least == 1 else "were"
    return f"Of the {gpus} GPUs of {name}, {least} {are} never seen busy."


def _too_little(variants: Sequence[Variant]) -> str:
    fit = [one for one in variants if not one.why]
    if not fit:
        return "none of the variants could be measured"
    if len(fit) == 1:
        return f"only {fit[0].words} could be measured"
    fewest = min(len(one.rates) for one in fit)
    slowest, fastest = min(fit, key=_pace), max(fit, key=_pace)
    return (
        f"{fewest} run{'s' if fewest != 1 else ''} of each, where {FEWEST_PAIRS} are needed; "
        f"{fastest.words} {'was' if _size(fastest) == 1 else 'were'} "
        f"{_pace(fastest) / _pace(slowest):.2f} times as fast as {slowest.words}"
    )


# ---- from where on ----


def _break_even(larger: Variant, smaller: Variant, measure: _Measure) -> tuple[BreakEven, ...]:
    """Return from which step on the larger one has made up for what its start takes longer.

    `n = (fixed_larger - fixed_smaller) / (1 / pace_smaller - 1 / pace_larger)`, of each round;
    from the lowest of them to the highest is the interval.
    """
    pace = measure._replace(by="pace")
    found, epochs = [], []
    for big, small in zip(larger.samples, smaller.samples, strict=False):
        fast, slow = pace.rate(big), pace.rate(small)
        if not fast or not slow or big.fixed_s is None or small.fixed_s is None:
            continue
        later_s = big.fixed_s - small.fixed_s
        if fast <= slow or later_s <= 0 or pace.why_not((big, small)):
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
