"""Submitted jobs as documents: their states, and what they used and cost."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from teho.model.document import Document, Fact, VerdictSeverity
from teho.model.job import Job, JobState, Submission
from teho.model.plan import Cost
from teho.schedulers.array import count_tasks
from teho.schedulers.registry import scheduler_or_none
from teho.show.build.layout import column, document, table
from teho.show.cells import format_moment, plain
from teho.units import counted, format_bytes, format_count, format_duration, plural

__all__ = [
    "NO_NUMBER",
    "JobView",
    "elapsed_of",
    "job_facts",
    "jobs_document",
    "state_sentence",
    "wall_time",
]

_BAD = frozenset(
    {
        JobState.FAILED,
        JobState.TIMED_OUT,
        JobState.OUT_OF_MEMORY,
        JobState.NODE_FAILED,
        JobState.PREEMPTED,
    }
)
_WORDS = {
    JobState.TIMED_OUT: "ended at its time limit",
    JobState.OUT_OF_MEMORY: "ended, because it was out of memory",
    JobState.NODE_FAILED: "ended, because its node failed",
    JobState.PREEMPTED: "preempted by another job",
    JobState.HELD: "held until it is released",
    JobState.UNKNOWN: "not known",
}
NO_NUMBER = "?"
"""Number of a job of which it is not known whether it exists."""
_NAME_MOST = 18
_NODES_MOST = 60
_NO_REASON = frozenset({"", "None", "NONE"})


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted job, as the scheduler reports it."""

    submission: Submission
    jobs: tuple[Job, ...]
    """One entry; for an array, one for each task that the scheduler lists."""
    cost: Cost | None = None
    """Cost until now. None: not documented, or not known yet."""

    @property
    def elapsed_s(self) -> float | None:
        """Wall time of all tasks together; None if no task's is known."""
        return elapsed_of(self.jobs)


def elapsed_of(jobs: Sequence[Job]) -> float | None:
    """Return the wall time of all tasks together; None if no task's is known."""
    known = [job.elapsed_s for job in jobs if job.elapsed_s is not None]
    return sum(known) if known else None


def state_sentence(jobs: Sequence[Job]) -> str:
    """Return the state of a job in some words, such as `pending (Resources)`."""
    if len(jobs) == 1:
        return _one(jobs[0])
    counts = Counter[str]()
    for job in jobs:
        counts[job.state.value.replace("_", " ")] += count_tasks(job)
    return "tasks: " + ", ".join(f"{count} {word}" for word, count in counts.most_common())


def _one(job: Job) -> str:
    sentence = _word(job)
    if job.state in {JobState.RUNNING, JobState.COMPLETING} and job.node_list:
        return f"{sentence} on {_nodes(job)}"
    if job.state.ended or job.reason in _NO_REASON:
        return sentence
    if job.state is JobState.UNKNOWN and job.id == NO_NUMBER:
        return "perhaps not submitted"
    sentence += f" ({plain(job.reason)})"
    if job.expected_start_at is not None and not job.state.ended:
        sentence += f", expected to start {format_moment(job.expected_start_at)}"
    return sentence


def _nodes(job: Job) -> str:
    """Write the nodes of a job; if there are many, their number and the first ones."""
    names = plain(job.node_list)
    if len(names) <= _NODES_MOST:
        return names
    count = f"{job.nodes} nodes, " if job.nodes else ""
    return f"{count}{names[:_NODES_MOST].rpartition(',')[0] or names[:_NODES_MOST]}…"


def _began(job: Job) -> bool:
    return bool(job.elapsed_s or job.node_list)


def _word(job: Job) -> str:
    word = _WORDS.get(job.state, job.state.value.replace("_", " "))
    if job.state is JobState.UNKNOWN and job.state_as_written:
        return f"in a state that Teho does not know, {plain(job.state_as_written)}"
    if job.state is JobState.CANCELLED and not _began(job):
        return "cancelled before it began"
    if job.state is JobState.FAILED and job.exit_code:
        return f"failed with exit code {job.exit_code}"
    if job.state is JobState.FAILED and job.signal:
        return f"failed by signal {job.signal}"
    return word


def jobs_document(views: Sequence[JobView]) -> Document:
    """Lay out jobs as a table with a row for each; a single job with its cost and what it used."""
    if len(views) == 1:
        return _document_of(views[0])
    units = {view.cost.unit for view in views if view.cost and view.cost.unit}
    unit = units.pop() if len(units) == 1 else ""
    states = Counter(_state(view) for view in views)
    counts = ", ".join(f"{count} {state}" for state, count in states.most_common())
    return document(
        title="teho status",
        verdict=f"{counted(len(views), 'job')}: {counts}",
        verdict_severity="remark",
        tables=(
            table(
                "jobs",
                "Jobs",
                views,
                column("job", "Job", lambda view: view.submission.number or NO_NUMBER),
                column("name", "Name", lambda view: _name(view.submission)),
                column("cluster", "Cluster", _cluster),
                column(
                    "time",
                    "Time",
                    lambda view: None if view.elapsed_s is None else wall_time(view.elapsed_s),
                ),
                column(
                    "cost",
                    f"Cost, {plural(unit, 2)}" if unit else "Cost",
                    lambda view: _amount_of(view, unit),
                ),
                column(
                    "state",
                    "State",
                    lambda view: state_sentence(view.jobs).removeprefix("tasks: "),
                ),
            ),
        ),
    )


def _state(view: JobView) -> str:
    """Return the state of a job in a word or two; an array can have several."""
    states = dict.fromkeys(job.state.value.replace("_", " ") for job in view.jobs)
    return " and ".join(states)


def _is_here(view: JobView) -> bool:
    return scheduler_or_none(view.submission.scheduler).is_this_machine


def _cluster(view: JobView) -> str:
    return "this machine" if _is_here(view) else view.submission.cluster


def _amount_of(view: JobView, unit: str) -> str | None:
    if view.cost is None or not view.cost.unit or _is_here(view):
        return None
    return _amount(view.cost.amount) if unit else _charged(view.cost)


def _name(submission: Submission) -> str | None:
    """Return the name of a job, or its command, cut to the width of a column."""
    name = submission.name
    if not name and submission.option is not None:
        name = shlex.join(submission.option.request.command)
    name = plain(name)
    return (name if len(name) <= _NAME_MOST else name[: _NAME_MOST - 1].rstrip() + "…") or None


def wall_time(elapsed_s: float) -> str:
    """Write a wall time; schedulers count whole seconds, so 0 means less than 1 s."""
    return format_duration(elapsed_s) if elapsed_s else "< 1 s"


def _document_of(view: JobView) -> Document:
    """Lay out one job: its state, then its cost and what it used."""
    jobs = view.jobs
    severity: VerdictSeverity = "remark"
    if any(job.state in _BAD for job in jobs):
        severity = "critical"
    elif all(job.state is JobState.COMPLETED for job in jobs):
        severity = "good"
    number = view.submission.number or NO_NUMBER
    verdict = f"Job {number} {state_sentence(jobs)}"
    if view.elapsed_s is not None and any(map(_began, jobs)):
        time, limit_s = wall_time(view.elapsed_s), jobs[0].time_limit_s
        if len(jobs) > 1:
            verdict += f", {time} in all"
        else:
            verdict += f" {'after' if jobs[0].state.ended else 'for'} {time}"
            verdict += f" of {format_duration(limit_s)}" if limit_s else ""
    return document(
        title=f"teho status {number}",
        verdict=verdict,
        verdict_severity=severity,
        facts=(*_cost(view), *_used(jobs)),
    )


def _cost(view: JobView) -> Iterator[Fact]:
    cost, option = view.cost, view.submission.option
    if cost is None or not any(map(_began, view.jobs)):
        return
    if not cost.unit:
        yield Fact("cost", "", "free of charge")
        return
    charged = f"{_charged(cost)}: {cost.sum}" if cost.amount else _charged(cost)
    if _is_here(view):
        note = f"on {view.submission.cluster}, the job would cost {charged}"
        yield Fact("cost", "", "free of charge here", note=note)
        return
    planned = option.cost if option is not None and not view.submission.array else None
    note = ""
    if planned is not None and planned.unit == cost.unit:
        note = f"planned: at most {_amount(planned.amount)}"
    yield Fact("cost", "Cost", charged, note=note)


def _amount(value: float) -> str:
    """Write an amount; a small one is not written as 0."""
    return f"{value:.2g}" if 0 < value < 0.01 else format_count(value)


def _charged(cost: Cost) -> str:
    return f"{_amount(cost.amount)} {plural(cost.unit, cost.amount)}"


def _used(jobs: Sequence[Job]) -> Iterator[Fact]:
    if len(jobs) != 1:
        return
    job = jobs[0]
    if job.node_list and job.state.ended:
        yield Fact("nodes", "Nodes", _nodes(job))
    if job.cpu_s is not None and job.elapsed_s and job.cores:
        used = f"{job.cpu_s / job.elapsed_s:.1f}"
        yield Fact("cores_used", "Cores used", used, note=f"of {job.cores}, on average")
    if job.memory_peak_bytes:
        # The peak is of one task, the request is of the whole job.
        is_one_node = job.nodes == 1 and (job.memory_bytes or 0) > 0
        note = f"of {format_bytes(job.memory_bytes or 0)}" if is_one_node else "of one task"
        yield Fact("memory_peak_bytes", "Memory", job.memory_peak_bytes, "bytes", note)
    if job.energy_j:
        yield Fact("energy_j", "Energy", job.energy_j, "J", "reported by the scheduler")


def job_facts(jobs: Sequence[Job]) -> Iterator[Fact]:
    """Yield the scheduler's figures of a job, or of the tasks of an array, for its report.

    These figures are separate from the figures of the recording.
    """
    if not jobs:
        return
    sentence = state_sentence(jobs)
    job = jobs[0]
    if len(jobs) == 1 and job.elapsed_s is not None:
        sentence += f" after {format_duration(job.elapsed_s)}"
        sentence += f" of {format_duration(job.time_limit_s)}" if job.time_limit_s else ""
    yield Fact("scheduler_state", "State in the scheduler", sentence)
    if len(jobs) > 1:
        return
    note = "reported by the scheduler"
    if job.cpu_s is not None:
        yield Fact("scheduler_cpu_s", "CPU time", job.cpu_s, "s", note)
    if job.memory_peak_bytes is not None:
        yield Fact(
            "scheduler_memory_peak_bytes",
            "Memory of a task",
            job.memory_peak_bytes,
            "bytes",
            f"at most, {note}",
        )
    if job.energy_j:
        yield Fact("scheduler_energy_j", "Energy", job.energy_j, "J", note)
