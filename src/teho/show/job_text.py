"""Jobs for a terminal: what each is doing, and in the end what it used and cost."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from rich.text import Text

from teho.model.document import Cell, Column, Table
from teho.model.job import Job, JobState, Submission
from teho.model.plan import Cost
from teho.schedulers.array import count_tasks
from teho.schedulers.registry import scheduler_or_none
from teho.show.cells import NOTHING, format_moment, plain
from teho.show.text.flow import dotted, flow, printed, words
from teho.show.text.table import table_lines
from teho.units import format_bytes, format_count, format_duration, format_energy, plural

__all__ = ["NO_NUMBER", "JobView", "render_job", "render_jobs", "state_sentence"]

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
    JobState.OUT_OF_MEMORY: "ended, out of memory",
    JobState.NODE_FAILED: "ended, its node failed",
    JobState.PREEMPTED: "preempted by another job",
    JobState.HELD: "held: nothing happens until it is released",
    JobState.UNKNOWN: "not known",
}
NO_NUMBER = "?"
"""What stands for the number of a job that may or may not be there."""
_NAME_MOST = 18
_NODES_MOST = 60
_NO_REASON = frozenset({"", "None", "NONE"})


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted job with what the scheduler says of it."""

    submission: Submission
    jobs: tuple[Job, ...]
    """One entry, or of an array one for each task that the scheduler lists."""
    cost: Cost | None = None
    """Of what has been used until now. None: not documented, or nothing known of it yet."""

    @property
    def elapsed_s(self) -> float | None:
        """Wall time of all tasks together; None if no task's is known."""
        return elapsed_of(self.jobs)


def elapsed_of(jobs: Sequence[Job]) -> float | None:
    """Return the wall time of all tasks together; None if no task's is known."""
    known = [job.elapsed_s for job in jobs if job.elapsed_s is not None]
    return sum(known) if known else None


def state_sentence(jobs: Sequence[Job]) -> str:
    """Say in some words what a job is doing, such as `pending (Resources)`."""
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
    """Write a job's nodes, or their number and the first of them."""
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


def render_jobs(views: Sequence[JobView], *, width: int, color: bool) -> str:
    """Render a line for each job; ends in a line break."""
    units = {view.cost.unit for view in views if view.cost and view.cost.unit}
    unit = units.pop() if len(units) == 1 else ""
    table = Table(
        key="jobs",
        title="Jobs",
        columns=(
            Column(key="job", label="Job"),
            Column(key="name", label="Name"),
            Column(key="cluster", label="Cluster"),
            Column(key="time", label="Time"),
            Column(key="cost", label=f"Cost, {plural(unit, 2)}" if unit else "Cost"),
            Column(key="state", label="State"),
        ),
        rows=tuple(_row(view, unit) for view in views),
    )
    return printed([table_lines(table, width)], width=width, color=color)


def _row(view: JobView, unit: str) -> dict[str, Cell]:
    submission, cost = view.submission, view.cost
    amount = NOTHING
    here = scheduler_or_none(submission.scheduler).is_this_machine
    if cost is not None and cost.unit and not here:
        amount = _amount(cost.amount) if unit else _charged(cost)
    return {
        "job": _number(submission),
        "name": _name(submission),
        "cluster": "this machine" if here else submission.cluster,
        "time": NOTHING if view.elapsed_s is None else _time(view.elapsed_s),
        "cost": amount,
        "state": state_sentence(view.jobs).removeprefix("tasks: "),
    }


def _name(submission: Submission) -> str:
    """Return a job's name, or what it runs, as far as a table has room for it."""
    name = submission.name
    if not name and submission.option is not None:
        name = shlex.join(submission.option.request.command)
    name = plain(name) or NOTHING
    return name if len(name) <= _NAME_MOST else name[: _NAME_MOST - 1].rstrip() + "…"


def _time(elapsed_s: float) -> str:
    """Write a wall time; schedulers count whole seconds, and a short job is not of 0 ms."""
    return format_duration(elapsed_s) if elapsed_s else "< 1 s"


def _number(submission: Submission) -> str:
    return submission.number or NO_NUMBER


def render_job(view: JobView, *, width: int, color: bool) -> str:
    """Render one job: what it does or did, what it cost, what it used; ends in a line break."""
    jobs = view.jobs
    bad = any(job.state in _BAD for job in jobs)
    good = all(job.state is JobState.COMPLETED for job in jobs)
    mark = ("✗", "bold red") if bad else ("✓", "bold green") if good else ("·", "bold")
    head = f"Job {_number(view.submission)} {state_sentence(jobs)}"
    if view.elapsed_s is not None and any(map(_began, jobs)):
        time, limit_s = _time(view.elapsed_s), jobs[0].time_limit_s
        if len(jobs) > 1:
            head += f", {time} in all"
        else:
            head += f" {'after' if jobs[0].state.ended else 'for'} {time}"
            head += f" of {format_duration(limit_s)}" if limit_s else ""
    lines = flow(words(head), width, Text.assemble((mark[0], mark[1]), " "), style="bold")
    indent = Text("  ")
    for sentence in _cost(view):
        lines += flow(words(sentence), width, indent)
    if used := list(_used(jobs)):
        lines += flow(dotted([Text(phrase) for phrase in used]), width, indent, style="dim")
    return printed([lines], width=width, color=color)


def _cost(view: JobView) -> Iterator[str]:
    cost, option = view.cost, view.submission.option
    if cost is None or not any(map(_began, view.jobs)):
        return
    if not cost.unit:
        yield "Nothing is charged here"
        return
    planned = option.cost if option is not None and not view.submission.array else None
    if scheduler_or_none(view.submission.scheduler).is_this_machine:
        yield (
            f"Not charged here; on {view.submission.cluster} it would be "
            f"{_charged(cost)}{_sum(cost)}"
        )
        return
    of_plan = ""
    if planned is not None and planned.unit == cost.unit:
        of_plan = f" of at most {_amount(planned.amount)}"
    yield f"Cost {_charged(cost)}{of_plan}{_sum(cost)}"


def _sum(cost: Cost) -> str:
    return f": {cost.sum}" if cost.amount else ""


def _amount(value: float) -> str:
    """Write an amount that is not 0 so that it does not look like it."""
    return f"{value:.2g}" if 0 < value < 0.01 else format_count(value)


def _charged(cost: Cost) -> str:
    return f"{_amount(cost.amount)} {plural(cost.unit, cost.amount)}"


def _used(jobs: Sequence[Job]) -> Iterator[str]:
    if len(jobs) != 1:
        return
    job = jobs[0]
    if job.node_list and job.state.ended:
        yield f"on {_nodes(job)}"
    if job.cpu_s is not None and job.elapsed_s and job.cores:
        yield f"CPU {job.cpu_s / job.elapsed_s:.1f} of {job.cores} cores on average"
    if job.memory_peak_bytes:
        # The peak is one task's, what was asked for the whole job's.
        alone = job.nodes == 1 and (job.memory_bytes or 0) > 0
        asked = f" of {format_bytes(job.memory_bytes or 0)}" if alone else ""
        yield f"memory at most {format_bytes(job.memory_peak_bytes)}{asked or ' in one task'}"
    if job.energy_j:
        yield f"energy {format_energy(job.energy_j)}, by the scheduler"
