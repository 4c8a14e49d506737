"""Lines of a list of jobs: what each job used, and what to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from teho.explain.policy import Policy
from teho.explain.waste.cost import Costs, JobCost
from teho.explain.waste.kind import CORES_OF_A_GPU, GIB_OF_A_CORE, Limits, Waste, limits_of
from teho.explain.waste.kinds import is_judged, waste_of
from teho.explain.waste.of_cores import judged_cores, judged_memory
from teho.explain.waste.recorded import Recordings
from teho.explain.waste.use import JobUse, use_of
from teho.model.accounted import AccountedJob
from teho.model.digest import JobLine
from teho.model.job import JobState
from teho.model.member import GpuNodes
from teho.schedulers.array import count_tasks
from teho.units import format_duration

__all__ = ["LargestWaste", "largest_waste", "lines_of_jobs", "sorted_lines"]

_ENDINGS = {
    JobState.TIMED_OUT: "ended at its time limit",
    JobState.OUT_OF_MEMORY: "ran out of memory",
    JobState.NODE_FAILED: "its node failed",
    JobState.PREEMPTED: "preempted",
}
_RUNS = (JobState.RUNNING, JobState.COMPLETING, JobState.SUSPENDED)
_WAITS = (JobState.PENDING, JobState.HELD)


def lines_of_jobs(
    jobs: Iterable[AccountedJob],
    policy: Policy,
    recordings: Recordings | None = None,
    gpu_nodes: GpuNodes | None = None,
) -> Iterator[JobLine]:
    """Yield a line for each job.

    Args:
        jobs: of the accounting.
        policy: the thresholds of the rules.
        recordings: the recordings of Teho.
        gpu_nodes: the nodes of partitions in which every node has GPUs; None: not known.
    """
    limits, costs = limits_of(policy), Costs()
    for job in jobs:
        use = use_of(job, recordings, gpu_nodes)
        yield _line(job, use, limits, recordings, costs.of(job))


def _line(
    job: AccountedJob,
    use: JobUse,
    limits: Limits,
    recordings: Recordings | None,
    cost: JobCost | None,
) -> JobLine:
    waste = tuple(waste_of(use, limits))
    wasted = _wasted(use, waste, limits)
    is_known = job.elapsed_s is not None
    return JobLine(
        id=job.id,
        tasks=count_tasks(job) if job.task else 1,
        name=job.name,
        user=job.user,
        account=job.account,
        partition=job.partition,
        state=job.state,
        state_as_written=job.state_as_written,
        submitted_at=job.submitted_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        wait_s=job.wait_s,
        elapsed_s=job.elapsed_s,
        time_limit_s=job.time_limit_s,
        node_list=job.node_list,
        nodes=job.nodes,
        cores=job.cores,
        cores_used=use.cores_used,
        memory_bytes=job.memory_bytes,
        memory_least_bytes=use.memory_least_bytes or None,
        memory_most_bytes=use.memory_most_bytes or None,
        gpus=job.gpus,
        gpu_type=job.gpu_type,
        gpu_busy_percent=use.gpu_busy_percent,
        core_hours=use.core_hours if is_known and job.cores else None,
        gpu_hours=use.gpu_hours if is_known and job.gpus is not None else None,
        billing_hours=use.billing_hours if is_known else None,
        cost=cost.amount if cost else None,
        cost_unit=cost.unit if cost else "",
        energy_j=job.energy_j,
        exit_code=job.exit_code,
        signal=job.signal,
        wasted_gpu_hours=wasted.gpu_hours,
        wasted_core_hours=wasted.core_hours,
        wasted_gib_hours=wasted.gib_hours,
        waste=tuple(one.kind.key for one in waste),
        look=_to_check(use, waste),
        recordings=recordings.ids(job) if recordings else (),
        source=job.source,
    )


class _Wasted(NamedTuple):
    """Waste of one job by resource. None: not judged."""

    gpu_hours: float | None
    core_hours: float | None
    gib_hours: float | None


def _wasted(use: JobUse, waste: Sequence[Waste], limits: Limits) -> _Wasted:
    """Add up the waste of a job; without the GPUs of `gpus_blocked`, which the job did not have."""
    gpu_hours = core_hours = gib_hours = None
    if is_judged(use, limits):
        of_job = [one.amounts for one in waste if one.kind.resource != "blocked"]
        if use.job.gpus is not None and (use.gpu_means or not use.gpus):
            gpu_hours = sum(amounts.gpu_hours for amounts in of_job)
        if judged_cores(use) is not None:
            core_hours = sum(amounts.core_hours for amounts in of_job)
        if judged_memory(use) is not None:
            gib_hours = sum(amounts.gib_hours for amounts in of_job)
    return _Wasted(gpu_hours, core_hours, gib_hours)


def _to_check(use: JobUse, waste: Sequence[Waste]) -> str:
    """Return what to check first: how the job failed, else its most important waste."""
    job = use.job
    if job.state is JobState.FAILED:
        how = f"exit code {job.exit_code}" if job.exit_code else "failed"
        how = f"signal {job.signal}" if job.signal else how
        return f"{how} after {format_duration(job.elapsed_s)}" if job.elapsed_s else how
    if job.state in _ENDINGS:
        return "; ".join([_ENDINGS[job.state], *(one.words for one in waste[:1])])
    return waste[0].words if waste else ""


class LargestWaste(NamedTuple):
    """The waste of a job, of the resource of which most was wasted."""

    weight: float
    """Core-hours that count as much."""
    hours: float
    unit: str
    """Such as `GPU-h`."""


def largest_waste(line: JobLine) -> LargestWaste | None:
    """Return the largest waste of a job; None: it was not judged."""
    found = [
        LargestWaste(weight * hours, hours, unit)
        for hours, unit, weight in (
            (line.wasted_gpu_hours, "GPU-h", CORES_OF_A_GPU),
            (line.wasted_core_hours, "core-h", 1.0),
            (line.wasted_gib_hours, "GiB-h", 1 / GIB_OF_A_CORE),
        )
        if hours is not None
    ]
    return max(found, default=None)


def sorted_lines(lines: Iterable[JobLine], by: str) -> list[JobLine]:
    """Return lines with running jobs first, then jobs that wait.

    Args:
        lines: in any order.
        by: `start` (newest first), or `waste`, `time`, `cores`, `gpus`, `memory`, `cost` or
            `billing` (largest first).
    """
    value = _VALUES[by]
    return sorted(lines, key=lambda line: (_group(line), -(value(line) or 0.0)))


def _group(line: JobLine) -> int:
    return 0 if line.state in _RUNS else 1 if line.state in _WAITS else 2


def _start_s(line: JobLine) -> float:
    moment = line.started_at or line.submitted_at or line.ended_at
    return moment.timestamp() if moment else 0.0


def _wasted_weight(line: JobLine) -> float:
    found = largest_waste(line)
    return found.weight if found else 0.0


_VALUES: Mapping[str, Callable[[JobLine], float | None]] = {
    "start": _start_s,
    "waste": _wasted_weight,
    "time": attrgetter("elapsed_s"),
    "cores": attrgetter("core_hours"),
    "gpus": attrgetter("gpu_hours"),
    "memory": attrgetter("memory_most_bytes"),
    "cost": attrgetter("cost"),
    "billing": attrgetter("billing_hours"),
}
