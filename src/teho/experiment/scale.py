"""Run a program on more and more cores or GPUs in turns, until it is clear how far more pay."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

from teho.experiment.outputs import other_results
from teho.experiment.placement import Machine, Placement
from teho.experiment.rounds import Rounds, RunOnce
from teho.experiment.scaling import scaling
from teho.experiment.verdict import Terms, idle_gpus, measure_of
from teho.model.compared import Sample
from teho.model.scaled import Kind, Scaled, SizeRun
from teho.units import many

__all__ = ["ScaleRequest", "doublings", "scale", "size_of"]

_LOOKS = (3, 6)
"""Rounds after which it is asked whether all is clear."""


class ScaleRequest(NamedTuple):
    """What is to be scaled."""

    command: tuple[str, ...]
    placements: Sequence[Placement]
    """The smallest first, all of cores or all of GPUs."""
    terms: Terms
    for_s: float
    is_weak: bool = False
    """Whether each worker does the same work, however many there are."""
    cost_unit: str = ""
    notes: tuple[str, ...] = ()


def doublings(machine: Machine) -> str:
    """Return the sizes to try where nobody says: `gpu:1,gpu:2,…`, or cores where there is no GPU.

    Args:
        machine: what the job has.
    """
    kind, most = ("gpu", len(machine.gpus)) if machine.gpus else ("cpu", len(machine.logical_cores))
    sizes = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return ",".join(f"{kind}:{size}" for size in [*sizes, most])


def size_of(place: Placement) -> int:
    """Return how many workers a placement has."""
    return len(place.gpus) or len(place.cores)


def scale(
    wish: ScaleRequest,
    run: RunOnce,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Scaled:
    """Run a program on each placement in turns, and say how far more of them pay.

    There are two looks at the figures, after three rounds and after six. A KeyboardInterrupt ends
    it early, with what is known then.

    Args:
        wish: what is to be scaled.
        run: runs the program.
        tell: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program does not start.
    """
    began_s = clock()
    rounds = Rounds(run, wish.placements, wish.for_s, tell, clock)
    notes = list(wish.notes)
    try:
        for look in _LOOKS:
            while rounds.count < look and rounds.fit and rounds.affords(1):
                rounds.round()
            if rounds.fit < 2 or not _is_open(_scaled(wish, rounds, notes, clock() - began_s)):
                break
    except KeyboardInterrupt:
        notes.append("It was ended early.")
    if not wish.is_weak:  # more work has other results
        notes += other_results(rounds.printed)
    told = [idle_gpus(place.name, len(place.gpus), own) for place, own in rounds.runs.items()]
    notes += [note for note in told if note]
    return _scaled(wish, rounds, notes, clock() - began_s)


def _is_open(scaled: Scaled) -> bool:
    return any(step.pays is None for step in scaled.steps)


class _Measure(NamedTuple):
    """How all sizes are compared with each other."""

    by: Literal["time", "pace"]
    unit: str
    """`run`, `sample`, or what a step is."""
    lacking: str
    """What is said of a run that shows no pace."""
    kind: Kind

    def work_per_s(self, sample: Sample, n: int) -> tuple[float | None, str]:
        """Return what n workers did a second, or None and why that is not known."""
        each = n if self.kind == "weak" else 1  # n workers do the work of n
        if sample.why:
            return None, sample.why
        if self.by == "time":
            return each / sample.elapsed_s, ""
        if sample.steps_per_s is None:
            return None, self.lacking
        if self.unit == "sample" and sample.samples_per_step is not None:
            return sample.steps_per_s * sample.samples_per_step, ""
        if sample.unit != self.unit:
            return None, f"it counts {many(sample.unit)}, the rest {many(self.unit)}"
        return sample.steps_per_s * each, ""


def _measure(wish: ScaleRequest, runs: Collection[Sequence[Sample]]) -> _Measure:
    by, unit, lacking = measure_of(runs)
    if by == "time":
        return _Measure(by, "run", lacking, "weak" if wish.is_weak else "strong")
    per_step = {sample.samples_per_step for own in runs for sample in own if not sample.why}
    if None in per_step:
        return _Measure(by, unit, lacking, "weak" if wish.is_weak else "strong")
    # With a batch for each rank, twice the ranks do twice the work a step.
    return _Measure(by, "sample", lacking, "weak" if len(per_step) > 1 else "strong")


def _scaled(wish: ScaleRequest, rounds: Rounds, notes: Sequence[str], elapsed_s: float) -> Scaled:
    measure = _measure(wish, rounds.runs.values())
    runs = {
        size_of(place): [
            _size_run(sample, measure.work_per_s(sample, size_of(place)), hourly) for sample in own
        ]
        for place, own in rounds.runs.items()
        for hourly in (wish.terms.hourly.get(place.name),)
    }
    return scaling(
        measure.kind,
        runs,
        argv=wish.command,
        elapsed_s=elapsed_s,
        worker="GPU" if wish.placements[0].gpus else "core",
        unit=measure.unit,
        cost_unit=wish.cost_unit,
        notes=notes,
    )


def _size_run(
    sample: Sample, work_per_s: tuple[float | None, str], hourly: float | None
) -> SizeRun:
    return SizeRun(
        wall_s=sample.elapsed_s,
        work_per_s=work_per_s[0],
        energy_j=sample.energy_j if isinstance(sample.energy_j, float) else None,
        cost=hourly * sample.elapsed_s / 3600 if hourly else None,
        recording=sample.run,
        why=work_per_s[1],
    )
