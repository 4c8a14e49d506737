"""A job of the accounting as a run with figures, so that the rules and the report can read it.

The accounting has totals and peaks, not samples. Everything else is missing, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

import msgspec

from teho.errors import InputError
from teho.jobs.js1 import Js1, Js1Node, decode_js1
from teho.model.accounted import AccountedJob
from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.job import JobState
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, End, Node, Run, RunState
from teho.model.summary import Figure, GpuSummary, NodeSummary, PartlyKnown, Stat, Summary
from teho.schedulers.hostlist import expand_hosts
from teho.schedulers.inventory import gpu_of, is_product

__all__ = ["JobRun", "MemoryUse", "SourceOf", "as_run", "memory_of", "node_names"]

_NEARLY = 1.1
"""If the two bounds of a job's memory differ by less than this factor, it is taken as known."""
_SAMPLED_S = 120.0
"""Slurm takes a sample of each task every 30 s by default (JobAcctGatherFrequency). A step of this
length without a sample was not measured; a shorter step can have no sample."""
_OVERHEAD = frozenset({"extern"})
"""Steps that run no program of the user."""
_SACCT_CPU = "column TotalCPU: the CPU time of all processes of all steps"
_SACCT_MEMORY = "column MaxRSS: the largest sample of the memory of one task"
_QACCT_CPU = "line cpu"
_QACCT_MEMORY = "line ru_maxrss: the largest memory of one process"


class SourceOf(NamedTuple):
    """A figure of the report and its source."""

    figure: str
    source: str


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the accounting, as the rules and the report read it."""

    job: AccountedJob
    run: Run
    state: RunState
    summary: Summary
    memory: MemoryUse
    sources: tuple[SourceOf, ...]
    jobstats: Js1 | Missing
    """Summary of Jobstats in the comment of the job, or why there is none."""
    store: str = ""
    """Store with samples of the job; empty: there is none, or it has none."""
    covered_percent: float = 0.0
    """Share of the time of all nodes for which the store has samples."""
    notes: tuple[str, ...] = ()
    """Sentences about these samples."""


class MemoryUse(NamedTuple):
    """Bounds of the largest memory that a job used at one time, in bytes."""

    least: int
    """Peak of the largest task; 0: not known."""
    most: int
    """Sum of the peaks of all tasks; 0: not known. Memory that tasks share is counted several
    times."""


def as_run(job: AccountedJob) -> JobRun:
    """Return a job as a run, with the figures that the accounting has."""
    jobstats = _jobstats_of(job)
    known = {} if isinstance(jobstats, Missing) else _by_short_name(jobstats)
    names = node_names(job) or list(known)
    elapsed_s = job.elapsed_s or 0.0
    shares = _Shares(job, len(names))
    memory = memory_of(job)
    nodes = tuple(
        _node_summary(job, name, place, shares, known.get(_short(name)), memory)
        for place, name in enumerate(names)
    )
    if len(nodes) == 1 and job.cpu_s is not None and elapsed_s:
        nodes = (msgspec.structs.replace(nodes[0], cpu_cores_used=job.cpu_s / elapsed_s),)
    summary = Summary(
        elapsed_s=elapsed_s,
        cpu_s=_no_cpu_time(job) if job.cpu_s is None else job.cpu_s,
        bin_s=max(elapsed_s, 1e-3),
        bin_count=1,
        nodes=nodes,
    )
    return JobRun(
        job=job,
        run=_run(job, nodes, shares),
        state=RunState.FINISHED if job.state.ended else RunState.RUNNING,
        summary=summary,
        memory=memory,
        sources=tuple(_sources(job, jobstats)),
        jobstats=jobstats,
    )


def node_names(job: AccountedJob) -> list[str]:
    """Return the names of a job's nodes; empty if it has none yet, or if they cannot be read."""
    if job.hosts:
        return list(job.hosts)
    try:
        return list(expand_hosts(job.node_list)) if job.node_list else []
    except InputError:
        return []


def _by_short_name(jobstats: Js1) -> dict[str, Js1Node]:
    return {_short(name): node for name, node in jobstats.nodes.items()}


def _short(host: str) -> str:
    """Return a host's name without its domain, which one of the sources may have."""
    return host.partition(".")[0]


def memory_of(job: AccountedJob) -> MemoryUse:
    """Return the bounds of the memory that a job used at one time."""
    least = job.memory_peak_bytes or 0
    own = [step for step in job.steps if step.name not in _OVERHEAD]
    if any(not step.memory_peak_bytes and (step.elapsed_s or 0) >= _SAMPLED_S for step in own):
        return MemoryUse(least, 0)
    steps = [(step, step.tasks or 1) for step in own if step.memory_peak_bytes]
    # Steps of one job can run at the same time.
    most = sum(
        (step.memory_mean_bytes or step.memory_peak_bytes or 0) * tasks for step, tasks in steps
    )
    if not job.steps and (job.cores or 1) > 1:
        # Grid Engine has the largest process; a job of several slots may have several.
        most = least * (job.cores or 1)
    return MemoryUse(least, max(least, most))


class _Shares:
    """How the resources of a job are divided among its nodes, if the accounting does not say."""

    def __init__(self, job: AccountedJob, nodes: int) -> None:
        self._job = job
        self._nodes = max(nodes, 1)

    def cores(self, place: int) -> int:
        """Return the cores of a node; the sum over all nodes is exact."""
        return self._part(self._job.cores or 0, place)

    def memory_bytes(self, place: int) -> int | None:
        """Return the memory of a node; the sum over all nodes is exact."""
        total = self._job.memory_bytes
        return None if total is None else self._part(total, place)

    def gpus(self, place: int) -> int | None:
        """Return the GPUs of a node; None: not known."""
        total = self._job.gpus
        if total is None or total % self._nodes:
            return None
        return self._part(total, place)

    def _part(self, total: int, place: int) -> int:
        each, rest = divmod(total, self._nodes)
        return each + (place < rest)


def _jobstats_of(job: AccountedJob) -> Js1 | Missing:
    if not job.admin_comment:
        return Missing(Reason.ABSENT, "the job has no summary of Jobstats")
    return decode_js1(job.admin_comment)


def _node_summary(
    job: AccountedJob,
    name: str,
    place: int,
    shares: _Shares,
    known: Js1Node | None,
    memory: MemoryUse,
) -> NodeSummary:
    elapsed_s = job.elapsed_s or 0.0
    used_cores: Figure = _not_for_each_node(job)
    peak: Figure = _node_memory(job, memory)
    limit_bytes = shares.memory_bytes(place)
    cores = shares.cores(place)
    if known is not None:
        if known.cpu_s is not None and elapsed_s:
            used_cores = known.cpu_s / elapsed_s
        if known.memory_peak_bytes is not None:
            peak = float(known.memory_peak_bytes)
        if known.memory_limit_bytes:
            limit_bytes = int(known.memory_limit_bytes)
        cores = int(known.core_count or cores)
    nothing = Missing(Reason.ABSENT, "the accounting does not have the memory of the job")
    return NodeSummary(
        name=name,
        covered_s=elapsed_s,
        first_s=0.0,
        last_s=elapsed_s,
        cores=cores,
        stats={},
        totals={},
        cpu_cores_used=used_cores,
        memory_peak_bytes=peak,
        memory_limit_bytes=limit_bytes or nothing,
        memory_limit_source=_limit_source(job) if limit_bytes else "",
        gpus=tuple(_gpus(job, name, shares.gpus(place), known)),
        series={},
    )


def _limit_source(job: AccountedJob) -> str:
    return "node" if job.more_memory_than_requested else "scheduler"


def _not_for_each_node(job: AccountedJob) -> Missing:
    return Missing(Reason.UNRECORDED, f"{job.source} has no CPU time for each node of a job")


def _no_cpu_time(job: AccountedJob) -> Missing:
    if not job.state.ended:
        return Missing(
            Reason.UNRECORDED, f"{job.source} has the CPU time only after the end of the job"
        )
    return Missing(Reason.UNRECORDED, f"{job.source} has no CPU time of this job")


def _node_memory(job: AccountedJob, memory: MemoryUse) -> Figure:
    if not memory.least:
        return Missing(Reason.UNRECORDED, f"{job.source} has no memory peak of this job")
    if (job.nodes or 1) > 1:
        return Missing(Reason.UNRECORDED, f"{job.source} has no memory peak for each node of a job")
    if not memory.most:
        return Missing(Reason.UNRECORDED, f"{job.source} has no memory peak of some steps")
    if memory.most > _NEARLY * memory.least:
        return Missing(
            Reason.UNRECORDED,
            f"{job.source} has the memory peak of each task, but not of all tasks together",
        )
    return float(memory.most)


def _gpus(
    job: AccountedJob, node: str, count: int | None, known: Js1Node | None
) -> Iterator[GpuSummary]:
    """Yield the GPUs of a node; without figures if Jobstats has none."""
    minors = known.gpus() if known is not None else []
    nothing = _no_gpu_use(job)
    for position in range(max(count or 0, len(minors))):
        minor = minors[position] if position < len(minors) else ""
        stats: dict[str, Stat | Missing] = {
            "gpu_busy_percent": nothing, "gpu_memory_used_bytes": nothing,
        }  # fmt: skip
        total: float | None = None
        if minor and known is not None:
            stats |= _jobstats_gauges(known, minor, job.elapsed_s or 0.0)
            total = known.gpu_memory_bytes.get(minor)
        number = int(minor) if minor.isdecimal() else position
        yield GpuSummary(
            device=Device(
                id=f"{node}-gpu{number}",
                index=number,
                name=job.gpu_type or "GPU",
                vendor=gpu_of(job.gpu_type, 1).vendor if job.gpu_type else "nvidia",
                memory_bytes=int(total) if total else None,
            ),
            position=number,
            stats=stats,
            energy_j=Missing(Reason.UNRECORDED, "the accounting has no energy of each GPU"),
            series={},
        )


def _jobstats_gauges(known: Js1Node, minor: str, elapsed_s: float) -> dict[str, PartlyKnown]:
    busy = known.gpu_busy_percent.get(minor)
    memory = known.gpu_memory_peak_bytes.get(minor)
    only = "the summary of Jobstats has only the {} value"
    found = {}
    if busy is not None:
        found["gpu_busy_percent"] = PartlyKnown(
            Reason.UNRECORDED, only.format("mean"), mean=float(busy), covered_s=elapsed_s
        )
    if memory is not None:
        found["gpu_memory_used_bytes"] = PartlyKnown(
            Reason.UNRECORDED, only.format("highest"), max=float(memory), covered_s=elapsed_s
        )
    return found


def _no_gpu_use(job: AccountedJob) -> Missing:
    return Missing(Reason.UNRECORDED, f"{job.source} does not have the mean use of each GPU")


def _run(job: AccountedJob, nodes: Sequence[NodeSummary], shares: _Shares) -> Run:
    began = job.started_at or job.submitted_at or datetime.now(timezone.utc)
    return Run(
        format=FORMAT_VERSION,
        id=job.id,
        name=job.name,
        command=(),
        started_at=began,
        host=nodes[0].name if nodes else "",
        environment={"SLURM_JOB_NUM_NODES": str(len(nodes))} if len(nodes) > 1 else {},
        end=_end(job, began),
        nodes=tuple(
            Node(
                name=node.name,
                started_at=began,
                period_s=1.0,
                allocation=Allocation(
                    scheduler=job.scheduler,
                    job_id=job.id,
                    job_name=job.name,
                    cluster=job.cluster or None,
                    partition=job.partition or None,
                    account=job.account or None,
                    node_count=len(nodes),
                    node_list=job.node_list or None,
                    cores_asked=node.cores or None,
                    memory_limit_bytes=shares.memory_bytes(place),
                    memory_limit_source=_limit_source(job),
                    gpus_held=shares.gpus(place),
                    # Cores of a whole node come without a request, as cores that come with GPUs.
                    with_gpus=("cores",) if job.more_cores_than_requested else (),
                    time_limit_s=job.time_limit_s,
                ),
                # Without the model, all GPUs of the catalogue are possible.
                devices=tuple(gpu.device for gpu in node.gpus)
                if job.gpu_type and is_product(job.gpu_type)
                else (),
            )
            for place, node in enumerate(nodes)
        ),
    )


def _end(job: AccountedJob, began: datetime) -> End | None:
    if not job.state.ended:
        return None
    is_good = job.state is JobState.COMPLETED
    return End(
        at=job.ended_at or began,
        elapsed_s=job.elapsed_s or 0.0,
        exit_code=job.exit_code if is_good or job.state is JobState.FAILED else None,
        signal=job.signal if job.state is JobState.FAILED else None,
        job_state="" if is_good else job.state.value,
    )


def _sources(job: AccountedJob, jobstats: Js1 | Missing) -> Iterator[SourceOf]:
    is_slurm = job.source == "sacct"
    yield SourceOf("state, times, allocated resources", job.source)
    if job.source == "qstat":
        if job.used_until_now:
            yield SourceOf("CPU time and memory until now", "qstat -j, line usage")
        return
    if job.cpu_s is not None:
        yield SourceOf("CPU time", f"{job.source}, {_SACCT_CPU if is_slurm else _QACCT_CPU}")
    if job.memory_peak_bytes:
        words = _SACCT_MEMORY if is_slurm else _QACCT_MEMORY
        yield SourceOf("memory", f"{job.source}, {words}")
    if job.used_until_now:
        yield SourceOf(
            "CPU time, memory and GPUs of running steps",
            f"{job.used_until_now}: the last sample that Slurm took of each task",
        )
    if not isinstance(jobstats, Missing):
        yield SourceOf(
            "CPU time, memory and GPUs of each node",
            "Jobstats, in the column AdminComment of sacct: means of GPU busy, maxima of memory",
        )
    if any(step.gpu_peak_percent is not None for step in job.steps):
        yield SourceOf(
            "highest use of GPUs by one task",
            "sacct, column TRESUsageInMax: gres/gpuutil and gres/gpumem",
        )
    if job.energy_j:
        yield SourceOf(
            "energy",
            "sacct, column ConsumedEnergyRaw: whole nodes, with the work of other jobs",
        )
