"""From a recording to what it says of how fast and how dear a run was."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from teho.experiment.pace import FEWEST_STEPS
from teho.experiment.progress import ProgressReport, read_progress
from teho.explain.energy import energy_of_node
from teho.explain.program import program_of
from teho.explain.step import ending, failed
from teho.explain.summary import summarise
from teho.explain.totals import energy_of
from teho.explain.wording import blind_tensorflow, blind_torch
from teho.model.compared import Sample
from teho.model.metric import METRICS
from teho.model.missing import Missing, Reason
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Figure, Stat, Summary
from teho.model.watched import WatchedProcess
from teho.store.probe import watched_processes
from teho.units import format_count, format_duration

__all__ = ["sample_of"]

_BUSY = "gpu_busy_percent"
_METRICS = tuple(
    metric
    for metric in METRICS
    if "energy" in metric.name or metric.name.endswith("power_w") or metric.name == _BUSY
)
_IDLE_PERCENT = 1.0
"""Below it, a GPU is not the program's, as the rule `gpu_never_used` has it."""


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
    summary = summarise(run, directory, problems, _METRICS)
    sample = Sample(
        run=run.id,
        elapsed_s=summary.elapsed_s,
        # Some programs end with exit code 0 when they are told to.
        is_whole=bool(run.end and run.end.exit_code == 0 and not run.end.on_purpose),
        energy_j=_of_all(_energy(summary), summary),
        gpu_energy_j=_of_all(energy_of(summary.gpus), summary),
        idle_gpus=_idle_gpus(summary),
    )
    if sight := read_progress(processes, window_s or summary.elapsed_s):
        sample = _with_steps(sample, sight, processes)
    return msgspec.structs.replace(sample, why=_why(run, sample, processes))


def _why(run: Run, sample: Sample, processes: Sequence[WatchedProcess]) -> str:
    if run.end is None:
        return "its recording has no end: it still runs, or was killed with its recorder"
    if failed(run.end):
        if run.end.exit_code is None and run.end.signal is None:
            return f"it did not end well: {ending(run.end)}"
        return f"it ended {'with ' if run.end.signal is None else ''}{ending(run.end)}"
    if run.end.on_purpose and sample.steps_per_s is None:
        took = format_duration(sample.elapsed_s)
        if sample.steps:
            return f"it neither ended nor showed a steady pace within {took}; `--for` gives more"
        return (
            f"it neither ended nor showed a step within {took}: `--for` gives more, and "
            "`teho.step()` in the program, after each step, shows them"
        )
    given = max((len(node.cores) for node in run.nodes), default=0)
    had = max((len(process.cores or ()) for process in processes), default=0)
    if 0 < given < had:
        return (
            f"it was given {format_count(given)} of the cores and ran on {format_count(had)}: "
            "`srun`, for one, gives a program cores and GPUs of its own"
        )
    has_gpus = any(node.devices for node in run.nodes)
    # Another library may have used them.
    return _blind(processes) if has_gpus and sample.idle_gpus != 0 else ""


def _blind(processes: Sequence[WatchedProcess]) -> str:
    """Say which framework could not use a GPU; empty if one could, or that is not known."""
    found: dict[str, dict[str, Any]] = {}
    for process in processes:
        found |= process.libraries
    torch, jax = found.get("torch", {}), found.get("jax", {})
    tensorflow = blind_tensorflow(found.get("tensorflow", {}))
    if "cupy" in found or ("tensorflow" in found and not tensorflow):
        return ""
    if torch.get("version") and not (torch.get("cuda") or torch.get("hip") or jax.get("devices")):
        return blind_torch(torch)
    if {str(one).lower() for one in jax.get("devices", ())} == {"cpu"} and not torch:
        return f"its JAX {jax.get('version', '')} sees no GPU"
    return "" if torch or jax else tensorflow


def _idle_gpus(summary: Summary) -> int | None:
    """Return how many GPUs were never seen busy; None if they were not looked at for long."""
    stats = [gpu.stats.get(_BUSY) for gpu in summary.gpus]
    seen = [stat for stat in stats if isinstance(stat, Stat)]
    if not seen or len(seen) < len(stats):
        return None
    if any(stat.covered_s < summary.elapsed_s / 2 for stat in seen):
        return None
    return sum(stat.max < _IDLE_PERCENT for stat in seen)


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
    missing = [part for part in parts if isinstance(part, Missing)]
    if missing or not parts:
        return missing[0] if missing else Missing(Reason.UNRECORDED, "no node was recorded")
    return math.fsum(part for part in parts if not isinstance(part, Missing))


def _of_all(energy_j: Figure, summary: Summary) -> Figure:
    """Return the energy of the whole run, as if its first moments had been like those recorded."""
    covered_s = min((node.covered_s for node in summary.nodes), default=0.0)
    if isinstance(energy_j, Missing):
        return energy_j
    if covered_s < summary.elapsed_s / 2:
        return Missing(Reason.UNRECORDED, "the run was too short to be measured")
    return energy_j * max(1.0, summary.elapsed_s / covered_s)


def _with_steps(
    sample: Sample, sight: ProgressReport, processes: Sequence[WatchedProcess]
) -> Sample:
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
        samples_per_step=_samples_per_step(sight),
    )
    if pace is None or pace.steps < FEWEST_STEPS:
        return sample
    before = bisect_right(times_s, pace.from_s)
    return msgspec.structs.replace(
        sample,
        steps_per_s=pace.steps_per_s,
        fixed_s=pace.from_s - began_s - before / pace.steps_per_s,
    )


def _steps_per_epoch(sight: ProgressReport) -> float | None:
    given = sight.loader.given if sight.loader else ()
    firsts_s = [one.at_s for one in given if one.is_first]
    steps = [
        bisect_left(sight.times_s, after_s) - bisect_left(sight.times_s, before_s)
        for before_s, after_s in pairwise(firsts_s)
    ]
    return float(median(steps)) if steps else None


def _samples_per_step(sight: ProgressReport) -> float | None:
    size = sight.loader.settings.get("batch_size") if sight.loader else None
    return float(size * sight.ranks) if size else None
