"""Run a program on more and more cores or GPUs in turns, until it is clear how far more pay."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from teho.experiment.contest import Terms, measure_of
from teho.experiment.placement import Machine, Placement
from teho.experiment.rounds import Rounds, Run
from teho.experiment.scaling import scaling
from teho.model.compared import Sample
from teho.model.scaled import Kind, Scaled, SizeRun

__all__ = ["Wish", "doublings", "scale", "size_of"]

_LOOKS = (3, 6)
"""Rounds after which it is asked whether all is clear."""


class Wish(NamedTuple):
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
    wish: Wish,
    run: Run,
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
    return _scaled(wish, rounds, notes, clock() - began_s)


def _is_open(scaled: Scaled) -> bool:
    return any(step.pays is None for step in scaled.steps)


def _scaled(wish: Wish, rounds: Rounds, notes: Sequence[str], elapsed_s: float) -> Scaled:
    measure, unit, lacking = measure_of(rounds.runs.values())
    per_step = {
        sample.samples_per_step for own in rounds.runs.values() for sample in own if not sample.why
    }
    counts_samples = measure == "pace" and None not in per_step
    # With a batch for each rank, twice the ranks do twice the work a step.
    kind: Kind = "weak" if wish.is_weak or (counts_samples and len(per_step) > 1) else "strong"
    runs = {}
    for place, own in rounds.runs.items():
        n, hourly = size_of(place), wish.terms.hourly.get(place.name)
        each = n if kind == "weak" else 1  # n workers do the work of n
        runs[n] = [
            _with_pace(_size_run(sample, hourly), sample, each, lacking)
            if measure == "pace"
            else _with_time(_size_run(sample, hourly), sample, each)
            for sample in own
        ]
    unit = "run" if measure == "time" else "sample" if counts_samples else unit
    return scaling(
        kind,
        runs,
        argv=wish.command,
        elapsed_s=elapsed_s,
        worker="GPU" if wish.placements[0].gpus else "core",
        unit=unit,
        cost_unit=wish.cost_unit,
        notes=notes,
    )


def _size_run(sample: Sample, hourly: float | None) -> SizeRun:
    return SizeRun(
        wall_s=sample.elapsed_s,
        energy_j=sample.energy_j if isinstance(sample.energy_j, float) else None,
        cost=hourly * sample.elapsed_s / 3600 if hourly else None,
        recording=sample.run,
        why=sample.why,
    )


def _with_time(run: SizeRun, sample: Sample, each: int) -> SizeRun:
    return run if run.why else replace(run, work_per_s=each / sample.elapsed_s)


def _with_pace(run: SizeRun, sample: Sample, each: int, lacking: str) -> SizeRun:
    if run.why:
        return run
    if sample.steps_per_s is None:
        return replace(run, why=lacking or "its pace was not seen")
    return replace(run, work_per_s=sample.steps_per_s * (sample.samples_per_step or each))
