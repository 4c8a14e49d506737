"""Runs a program on more and more cores or GPUs in turns, until the useful number is clear."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from teho.experiment.measure import Measure, measure_of
from teho.experiment.outputs import other_results
from teho.experiment.placement import Machine, Placement
from teho.experiment.rounds import Rounds, RunOnce
from teho.experiment.scaling import scaling
from teho.experiment.verdict import Terms, idle_gpus
from teho.model.compared import Sample
from teho.model.scaled import Kind, Scaled, SizeRun

__all__ = ["ScaleRequest", "doublings", "scale", "size_of"]

_CHECKS = (3, 6)
"""Numbers of rounds after which the figures are judged."""


class ScaleRequest(NamedTuple):
    """What to scale."""

    command: tuple[str, ...]
    placements: Sequence[Placement]
    """The smallest first, all of cores or all of GPUs."""
    terms: Terms
    for_s: float
    is_weak: bool = False
    """Whether each worker does the same work, whatever their number is."""
    cost_unit: str = ""
    notes: tuple[str, ...] = ()


def doublings(machine: Machine) -> str:
    """Return the default sizes: `gpu:1,gpu:2,…`; without a GPU, numbers of cores.

    Args:
        machine: cores and GPUs of the job.
    """
    kind, most = ("gpu", len(machine.gpus)) if machine.gpus else ("cpu", len(machine.logical_cores))
    sizes = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return ",".join(f"{kind}:{size}" for size in [*sizes, most])


def size_of(place: Placement) -> int:
    """Return the number of workers of a placement."""
    return len(place.gpus) or len(place.cores)


def scale(
    wish: ScaleRequest,
    run: RunOnce,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Scaled:
    """Run a program on each placement in turns, and return how it scales.

    The figures are judged after three rounds and after six. A KeyboardInterrupt ends the runs
    early, with the result so far.

    Args:
        wish: what to scale.
        run: runs the program.
        progress: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program does not start.
    """
    began_s = clock()
    rounds = Rounds(run, wish.placements, wish.for_s, progress, clock)
    notes = list(wish.notes)
    try:
        for count in _CHECKS:
            rounds.until(count, fewest=1)
            steps = _scaled(wish, rounds, notes, clock() - began_s).steps
            if rounds.fit < 2 or all(step.is_efficient is not None for step in steps):
                break
    except KeyboardInterrupt:
        notes.append("The measurement was ended early.")
    if not wish.is_weak:  # more work has other results
        notes += other_results(rounds.printed)
    idle = (idle_gpus(place.name, len(place.gpus), own) for place, own in rounds.runs.items())
    return _scaled(wish, rounds, [*notes, *filter(None, idle)], clock() - began_s)


def _scaled(wish: ScaleRequest, rounds: Rounds, notes: Sequence[str], elapsed_s: float) -> Scaled:
    measure = measure_of(rounds.runs.values())
    kind: Kind = "weak" if wish.is_weak else "strong"
    sound = [one for own in rounds.runs.values() for one in own if not one.why]
    per_step = {one.samples_per_step for one in sound}
    if measure.by == "pace" and None not in per_step:
        # If each rank has its own batch, twice the ranks do twice the work a step.
        measure, kind = measure._replace(unit="sample"), "weak" if len(per_step) > 1 else "strong"
    runs = {
        size_of(place): [
            _size_run(one, measure, kind, size_of(place), wish.terms.hourly.get(place.name))
            for one in own
        ]
        for place, own in rounds.runs.items()
    }
    return scaling(
        kind,
        runs,
        argv=wish.command,
        elapsed_s=elapsed_s,
        worker="GPU" if wish.placements[0].gpus else "core",
        unit="run" if measure.by == "time" else measure.unit,
        cost_unit=wish.cost_unit,
        notes=notes,
    )


def _size_run(
    sample: Sample, measure: Measure, kind: Kind, n: int, hourly: float | None
) -> SizeRun:
    why = measure.why_not(sample)
    rate = None if why else measure.rate(sample)
    # In weak scaling, n workers do the work of n. A step's samples already count all workers.
    is_times_n = kind == "weak" and (measure.by == "time" or measure.unit != "sample")
    return SizeRun(
        wall_s=sample.elapsed_s,
        work_per_s=rate and rate * (n if is_times_n else 1),
        energy_j=sample.energy_j if isinstance(sample.energy_j, float) else None,
        cost=hourly * sample.elapsed_s / 3600 if hourly else None,
        recording=sample.run,
        why=why,
    )
