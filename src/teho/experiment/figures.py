"""Figures of a variant for `teho compare`, `teho scale` and `teho tune`: time, energy, cost."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from teho.model.compared import Compared, Sample, Variant
from teho.model.missing import Missing
from teho.model.scaled import Size
from teho.model.summary import Figure
from teho.model.tuned import Tuned

__all__ = [
    "STEPS",
    "SizeFigures",
    "VariantFigures",
    "first_recording",
    "notes_of_all",
    "paces_of",
    "size_figures",
    "variant_figures",
]

STEPS = 1000
"""Number of steps for which energy and cost are shown, if steps were counted."""
_LITTLE_S = 0.3
"""Shorter times for imports, compiling or copying are not shown."""


class VariantFigures(NamedTuple):
    """Medians of a variant's runs."""

    rate_per_s: float
    """Whole runs or steps per second."""
    start_up_s: float | None
    import_s: float | None
    compile_s: float | None
    copy_s: float | None
    energy_j: Figure
    """Of a whole run, or of `STEPS` steps."""
    cost: float | None
    """The same."""


def variant_figures(variant: Variant, *, is_pace: bool) -> VariantFigures:
    """Return the figures of a variant that was measured.

    Args:
        variant: with at least one rate.
        is_pace: whether its rates count steps instead of whole runs.
    """
    rate = median(variant.rates)
    took_s = (STEPS if is_pace else 1) / rate
    return VariantFigures(
        rate_per_s=rate,
        start_up_s=_median(variant, "start_up_s"),
        import_s=_part(variant, "import_s"),
        compile_s=_part(variant, "compile_s"),
        copy_s=_part(variant, "copy_s"),
        energy_j=_energy(variant.samples, took_s),
        cost=variant.hourly_cost * took_s / 3600 if variant.hourly_cost else None,
    )


def _median(variant: Variant, name: str) -> float | None:
    found = [getattr(sample, name) for sample in variant.samples]
    return median(known) if (known := [one for one in found if one is not None]) else None


def _part(variant: Variant, name: str) -> float | None:
    took_s = _median(variant, name)
    return took_s if took_s and took_s > _LITTLE_S else None


def _energy(samples: Sequence[Sample], took_s: float) -> Figure:
    powers = [sample.mean_power_w for sample in samples]
    known = [power for power in powers if power is not None]
    if len(known) == len(powers):
        return median(known) * took_s
    return next(one.energy_j for one in samples if isinstance(one.energy_j, Missing))


def notes_of_all(compared: Compared) -> list[str]:
    """Return the notes that all points share, to show them once."""
    first, *others = compared.points
    return [note for note in first.notes if all(note in point.notes for point in others)]


def first_recording(compared: Compared) -> str:
    """Return the first of several recordings; empty if there is only one."""
    names = dict.fromkeys(
        sample.run
        for point in compared.points
        for variant in point.variants
        for sample in variant.samples
    )
    return next(iter(names)) if len(names) > 1 else ""


class SizeFigures(NamedTuple):
    """Energy, cost and number of runs for one number of workers."""

    energy_j: float | None
    """Of a whole run, or of `STEPS` steps at its mean power."""
    cost: float | None
    """The same."""
    run_count: int
    """Number of runs that could be measured."""


def size_figures(size: Size, *, is_pace: bool) -> SizeFigures:
    """Return energy and cost of a size, for whole runs or for `STEPS` steps."""
    times = 1.0
    if is_pace and size.work_per_s and size.wall_s:
        times = STEPS / (size.work_per_s.value * size.wall_s)
    return SizeFigures(
        None if size.energy_j is None else size.energy_j * times,
        None if size.cost is None else size.cost * times,
        sum(run.work_per_s is not None for run in size.runs),
    )


def paces_of(tuned: Tuned) -> tuple[float, float] | None:
    """Return the steps per second before and after the change; None without a proved gain.

    A larger batch makes fewer steps per second, but may be faster. So both figures are in steps of
    the original size.
    """
    if not tuned.settings or tuned.gain is None:
        return None
    base, own = (
        next(trial for trial in tuned.trials if trial.settings == settings)
        for settings in ({}, tuned.settings)
    )
    before = base.steps_per_s or 0.0
    return before, before * (own.speed or 0.0)
