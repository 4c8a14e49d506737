"""Reads the speed, the energy and the use of GPUs of a run from its recording."""

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
from teho.units import counted, format_duration

__all__ = ["sample_of"]

_BUSY = "gpu_busy_percent"
_METRICS = tuple(
    metric
    for metric in METRICS
    if "energy" in metric.name or metric.name.endswith("power_w") or metric.name == _BUSY
)
_IDLE_PERCENT = 1.0
"""Below this, a GPU is not used by the program. The rule `gpu_never_used` has the same value."""


def sample_of(run: Run, directory: Path, window_s: float | None) -> Sample:
    """Return the figures of a recorded run.

    Args:
        run: its description.
        directory: of the recording.
        window_s: how long steps are measured; None: over the whole run.

    Raises:
        RecordingError: the recording cannot be read.
    """
    problems: list[str] = []
    processes = watched_processes(directory, problems)
    summary = summarise(run, directory, problems, _METRICS)
    sample = Sample(
        run=run.id,
        elapsed_s=summary.elapsed_s,
        # Some programs end with exit code 0 when Teho ends them.
        is_whole=bool(run.end and run.end.exit_code == 0 and not run.end.on_purpose),
        energy_j=_of_all(_energy(summary), summary),
        gpu_energy_j=_of_all(energy_of(summary.gpus), summary),
        idle_gpus=_idle_gpus(summary),
    )
    if report := read_progress(processes, window_s or summary.elapsed_s):
        sample = _with_steps(sample, report, processes)
    return msgspec.structs.replace(sample, why=_why(run, sample, processes))


def _why(run: Run, sample: Sample, processes: Sequence[WatchedProcess]) -> str:
    if run.end is None:
        return (
            "the recording does not contain the end of the run: the run is still running, or the "
            "recorder was killed"
        )
    if failed(run.end):
        if run.end.exit_code is None and run.end.signal is None:
            return f"the run failed: {ending(run.end)}"
        return f"the run ended {'with ' if run.end.signal is None else ''}{ending(run.end)}"
    if run.end.on_purpose and sample.steps_per_s is None:
        took = format_duration(sample.elapsed_s)
        if sample.steps:
            return (
                f"the program reached neither the end nor a steady step rate within {took}: "
                "increase `--for`"
            )
        return (
            f"the program showed no step and did not end within {took}: increase `--for`, or call "
            "`teho.step()` in the program after each step"
        )
    given = max((len(node.cores) for node in run.nodes), default=0)
    had = max((len(process.cores or ()) for process in processes), default=0)
    if 0 < given < had:
        return (
            f"the run was given {counted(given, 'core')}, but ran on {counted(had, 'core')}: "
            "a launcher such as `srun` may have given the run other cores and GPUs"
        )
    has_gpus = any(node.devices for node in run.nodes)
    # Another library may have used the GPUs.
    return _blind(processes) if has_gpus and sample.idle_gpus != 0 else ""


def _blind(processes: Sequence[WatchedProcess]) -> str:
    """Return which framework could not use a GPU; empty if one could, or if it is not known."""
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
        return f"the program's JAX {jax.get('version', '')} sees no GPU"
    return "" if torch or jax else tensorflow


def _idle_gpus(summary: Summary) -> int | None:
    """Return the number of GPUs that were never busy; None if they were measured too briefly."""
    stats = [gpu.stats.get(_BUSY) for gpu in summary.gpus]
    seen = [stat for stat in stats if isinstance(stat, Stat)]
    if not seen or len(seen) < len(stats):
        return None
    if any(stat.covered_s < summary.elapsed_s / 2 for stat in seen):
        return None
    return sum(stat.max < _IDLE_PERCENT for stat in seen)


def _energy(summary: Summary) -> Figure:
    """Return the energy of node and GPUs together; without a node meter, of CPU, memory and GPUs.

    It is the energy of the whole node, with other jobs on the node.
    """
    parts: list[Figure] = []
    for node in summary.nodes:
        whole_j, _ = energy_of_node(node)
        if not isinstance(whole_j, Missing):
            parts.append(whole_j)
            continue
        memory_j = node.totals["memory_energy_j"]
        parts.append(node.totals["cpu_energy_j"])
        # The CPU's meter may or may not include the memory.
        parts.append(0.0 if isinstance(memory_j, Missing) else memory_j)
        parts += [energy_of(node.gpus)] if node.gpus else []
    missing = [part for part in parts if isinstance(part, Missing)]
    if missing or not parts:
        return missing[0] if missing else Missing(Reason.UNRECORDED, "no node was recorded")
    return math.fsum(part for part in parts if not isinstance(part, Missing))


def _of_all(energy_j: Figure, summary: Summary) -> Figure:
    """Return the energy of the whole run. Its first moments are assumed to be like the rest."""
    covered_s = min((node.covered_s for node in summary.nodes), default=0.0)
    if isinstance(energy_j, Missing):
        return energy_j
    if covered_s < summary.elapsed_s / 2:
        return Missing(Reason.UNRECORDED, "the run was too short to be measured")
    return energy_j * max(1.0, summary.elapsed_s / covered_s)


def _with_steps(
    sample: Sample, report: ProgressReport, processes: Sequence[WatchedProcess]
) -> Sample:
    program = program_of(processes)
    main = program.mains[0] if program else None
    began_s = min(process.began_s for process in processes)
    pace, times_s = report.pace, report.times_s
    sample = msgspec.structs.replace(
        sample,
        unit=report.unit,
        steps=len(times_s),
        start_up_s=times_s[0] - began_s if times_s else None,
        import_s=main.seconds(Doing.IMPORTING) if main else None,
        compile_s=main.seconds(Doing.COMPILING) if main else None,
        copy_s=main.seconds(Doing.COPYING) if main else None,
        steps_per_epoch=_steps_per_epoch(report),
        samples_per_step=_samples_per_step(report),
    )
    if pace is None or pace.steps < FEWEST_STEPS:
        return sample
    before = bisect_right(times_s, pace.from_s)
    return msgspec.structs.replace(
        sample,
        steps_per_s=pace.steps_per_s,
        fixed_s=pace.from_s - began_s - before / pace.steps_per_s,
    )


def _steps_per_epoch(report: ProgressReport) -> float | None:
    given = report.loader.given if report.loader else ()
    firsts_s = [one.at_s for one in given if one.is_first]
    steps = [
        bisect_left(report.times_s, after_s) - bisect_left(report.times_s, before_s)
        for before_s, after_s in pairwise(firsts_s)
    ]
    return float(median(steps)) if steps else None


def _samples_per_step(report: ProgressReport) -> float | None:
    size = report.loader.settings.get("batch_size") if report.loader else None
    return float(size * report.ranks) if size else None
