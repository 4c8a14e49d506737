"""Ask sstat what the steps of a running job have used until now.

sacct has these figures only after the end of a step. Source: sstat(1).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from teho.model.accounted import AccountedJob, AccountedStep
from teho.model.job import JobState
from teho.schedulers.backend import UseNow
from teho.schedulers.slurm import values

__all__ = ["use_now"]

_COMMAND = "sstat"
# sstat(1), --format; 20.11 has all of them. None of them is a free text, so `|` separates them.
_COLUMNS = "JobID,NTasks,AveCPU,MaxRSS,AveRSS,TRESUsageInMax,TRESUsageInTot"
_RUNS = frozenset({JobState.RUNNING, JobState.COMPLETING, JobState.SUSPENDED})
_TIMEOUT_S = 10.0
"""sstat asks each node of the job, and a person waits for the report."""
_SURPLUS = 1.5
"""If a job used more CPU time than its cores times this factor could give, Slurm did not measure
it: it then prints its largest number."""


def use_now(job: AccountedJob) -> UseNow | None:
    """Return the question about a job; None if it does not run."""
    if job.state not in _RUNS or job.ended_at is not None or job.started_at is None:
        return None
    # The number of a task of an array, or of a component, is not the number in its id.
    number = job.raw_id or job.id
    argv = (
        _COMMAND, "--allsteps", "--noheader", "--parsable2", f"--format={_COLUMNS}",
        f"--jobs={number}",
    )  # fmt: skip
    return UseNow(argv=argv, read=_read, timeout_s=_TIMEOUT_S)


def _read(text: str, job: AccountedJob) -> AccountedJob | None:
    """Return the job with what sstat printed; None if it printed no figures."""
    names = _COLUMNS.split(",")
    rows: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) == len(names):
            row = dict(zip(names, cells, strict=True))
            rows[row["JobID"].partition(".")[2]] = row
    if not rows:
        return None
    known = {step.name: step for step in job.steps}
    for name in rows:
        known.setdefault(name, AccountedStep(name=name, state=JobState.RUNNING))
    steps = tuple(_step(step, rows.get(name), job) for name, step in known.items())
    peaks = [step.memory_peak_bytes for step in steps if step.memory_peak_bytes]
    times_s = [step.cpu_s for step in steps]
    # The sum is known only if the CPU time of each step is: earlier steps may have done the work.
    cpu_s = None if None in times_s else sum(filter(None, times_s))
    if not peaks and not cpu_s:
        return None
    return msgspec.structs.replace(
        job,
        steps=steps,
        cpu_s=cpu_s or None,
        memory_peak_bytes=max(peaks, default=None),
        used_until_now=_COMMAND,
    )


def _step(step: AccountedStep, row: Mapping[str, str] | None, job: AccountedJob) -> AccountedStep:
    if step.state.ended:
        return step  # sacct has its figures
    if row is None:
        # The external step runs no program.
        return step if step.name == "extern" else msgspec.structs.replace(step, cpu_s=None)
    most = values.tres(row["TRESUsageInMax"])
    gpu_percent = values.count(most.get("gres/gpuutil", ""))
    return msgspec.structs.replace(
        step,
        tasks=values.count(row["NTasks"]) or step.tasks,
        cpu_s=_cpu_s(row, job),
        memory_peak_bytes=values.size(row["MaxRSS"]) or None,
        memory_mean_bytes=values.size(row["AveRSS"]) or None,
        gpu_peak_percent=None if gpu_percent is None else float(gpu_percent),
        gpu_memory_peak_bytes=values.gpu_memory(most.get("gres/gpumem", "")),
    )


def _cpu_s(row: Mapping[str, str], job: AccountedJob) -> float | None:
    """Return the CPU time of all tasks of a step; None: Slurm did not measure it."""
    found = values.cpu_seconds(values.tres(row["TRESUsageInTot"]).get("cpu", ""))
    mean_s = values.cpu_seconds(row["AveCPU"])
    if found is None and mean_s is not None:
        found = mean_s * (values.count(row["NTasks"]) or 1)
    most_s = (job.cores or 0) * (job.elapsed_s or 0.0) * _SURPLUS
    return found if found is not None and found <= max(most_s, 1.0) else None
