"""From a recording to what it says of how fast and how dear a run was."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec

from teho.experiment.look import Sight, look_at
from teho.experiment.pace import FEWEST_STEPS
from teho.explain.energy import energy_of_node
from teho.explain.program import program_of
from teho.explain.step import ending, failed
from teho.explain.summary import summarise
from teho.explain.totals import energy_of
from teho.model.compared import Sample
from teho.model.metric import METRICS
from teho.model.missing import Missing
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Figure, Summary
from teho.model.watched import WatchedProcess
from teho.store.probe import watched_processes

__all__ = ["sample_of"]

_ENERGY = tuple(
    metric for metric in METRICS if "energy" in metric.name or metric.name.endswith("power_w")
)


def sample_of(run: Run, directory: Path, window_s: float | None) -> Sample:
    """Return what a recording says.

    Args:
        run: its description.
        directory: where it lies.
        window_s: how long steps are to be looked at; None: as long as there are any.

    Raises:
        RecordingError: it does not read.
    """
    problems: list[str] = []
    processes = watched_processes(directory, problems)
    summary = summarise(run, directory, problems, _ENERGY)
    sample = Sample(
        run=run.id,
        elapsed_s=summary.elapsed_s,
        is_whole=bool(run.end and run.end.exit_code == 0),
        why=_why(run),
        energy_j=_energy(summary),
        gpu_energy_j=energy_of(summary.gpus),
    )
    sight = look_at(processes, window_s or summary.elapsed_s)
    return _with_steps(sample, sight, processes) if sight else sample


def _why(run: Run) -> str:
    if run.end is None:
        return "its recording has no end"
    return f"it ended {ending(run.end)}" if failed(run.end) else ""


def _energy(summary: Summary) -> Figure:
    """Return the energy of node and GPUs together; of CPU and memory where the node has no meter.

    All of it is that of the node, whoever else computes there.
    """
    parts: list[Figure] = []
    for node in summary.nodes:
        whole_j, _ = energy_of_node(node)
        if not isinstance(whole_j, Missing):
            parts.append(whole_j)
            continue
        memory_j = node.totals["memory_energy_j"]
        parts.append(node.totals["cpu_energy_j"])
        # Where memory has a meter of its own or none, the CPU's figure is the best there is.
        parts.append(0.0 if isinstance(memory_j, Missing) else memory_j)
        parts += [energy_of(node.gpus)] if node.gpus else []
    missing = next((part for part in parts if isinstance(part, Missing)), None)
    return missing or sum(part for part in parts if not isinstance(part, Missing))


def _with_steps(sample: Sample, sight: Sight, processes: Sequence[WatchedProcess]) -> Sample:
    program = program_of(processes)
    main = program.mains[0] if program else None
    began_s = min(process.began_s for process in processes)
    pace, times_s = sight.pace, sight.times_s
    sample = msgspec.structs.replace(
        sample,
        unit=sight.unit,
        steps=len(times_s),
        start_up_s=times_s[0] - began_s if times_s else None,
        import_s=main.seconds(Doing.IMPORTING) if main else None,
        compile_s=main.seconds(Doing.COMPILING) if main else None,
        copy_s=main.seconds(Doing.COPYING) if main else None,
        steps_per_epoch=_steps_per_epoch(sight),
    )
    if pace is None or pace.steps < FEWEST_STEPS:
        return sample
    before = bisect_right(times_s, pace.from_s)
    return msgspec.structs.replace(
        sample,
        steps_per_s=pace.steps_per_s,
        fixed_s=pace.from_s - began_s - before / pace.steps_per_s,
    )


def _steps_per_epoch(sight: Sight) -> float | None:
    given = sight.loader.given if sight.loader else ()
    firsts_s = [one.at_s for one in given if one.is_first]
    steps = [
        bisect_left(sight.times_s, after_s) - bisect_left(sight.times_s, before_s)
        for before_s, after_s in pairwise(firsts_s)
    ]
    return float(median(steps)) if steps else None
