"""One task ended earlier or later than the other tasks, or its CPU time was different."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    RuleContext,
    Severity,
    Threshold,
    chosen,
)
from teho.explain.step import failed
from teho.explain.wording import capital, ranks_on, span
from teho.units import format_duration

RANK = 370
SEVERITY = "warning; remark if only the CPU time differs"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "end_percent": Threshold(
        10.0,
        "%",
        "TraceML, a profiler for training, warns if one rank differs from the other ranks by 10 % "
        "of the step time",
    ),
    "cpu_factor": chosen(
        2.0, "times", "if one task uses twice the CPU time of the others, this task does other work"
    ),
    "cpu_min_s": chosen(
        60.0, "s", "one task may need up to 60 s of CPU time for start-up and logging"
    ),
}


class _Task(NamedTuple):
    """A task that succeeded."""

    rank: int
    node: str
    end_s: float
    cpu_s: float


def judge(context: RuleContext) -> Findings:
    """Compare the tasks of a step with their median, if all tasks succeeded."""
    tasks = [
        _Task(task.rank, task.node, context.run.moment_s(task.node, task.end.at), task.end.cpu_s)
        for task in context.run.tasks
        if task.end is not None and task.end.cpu_s is not None and not failed(task.end)
    ]
    if context.run.step is not None and len(tasks) >= max(2, context.run.step.task_count):
        yield from _by_ends(context, tasks)
        yield from _by_cpu_time(context, tasks)


def _by_ends(context: RuleContext, tasks: Sequence[_Task]) -> Findings:
    ends = [task.end_s for task in tasks]
    middle_s = median(ends)
    far_s = context.limit("end_percent") / 100 * context.summary.elapsed_s
    late = [task for task in tasks if task.end_s - middle_s > far_s]
    odd = late or [task for task in tasks if middle_s - task.end_s > far_s]
    if not odd:
        return
    most_s = max(abs(task.end_s - middle_s) for task in odd)
    yield context.finding(
        Severity.WARNING,
        f"{_named(odd)} ended {format_duration(most_s)} {'later' if late else 'earlier'} than "
        f"the median task (of {len(tasks)} tasks).",
        evidence=(
            Evidence("time after which the first task ended", min(ends), "s"),
            Evidence("time after which half of the tasks had ended", middle_s, "s"),
            Evidence("time after which the last task ended", max(ends), "s"),
        ),
        judged_by=["end_percent"],
        action=(
            "Give all ranks the same amount of work, or move the additional work of the slow "
            "ranks to a separate job. All nodes stay allocated until the last task ends."
        ),
    )


def _by_cpu_time(context: RuleContext, tasks: Sequence[_Task]) -> Findings:
    times = [task.cpu_s for task in tasks]
    middle_s = median(times)
    factor, least_s = context.limit("cpu_factor"), context.limit("cpu_min_s")
    odd = [
        task
        for task in tasks
        if abs(task.cpu_s - middle_s) >= least_s
        and max(task.cpu_s, middle_s) >= factor * min(task.cpu_s, middle_s)
    ]
    if not odd:
        return
    yield context.finding(
        Severity.REMARK,
        f"{_named(odd)} used {span([task.cpu_s for task in odd], 's')} of CPU time, but the median "
        f"of the {len(tasks)} tasks is {format_duration(middle_s)}.",
        evidence=(
            Evidence("CPU time of a task, lowest", min(times), "s"),
            Evidence("CPU time of a task, median", middle_s, "s"),
            Evidence("CPU time of a task, highest", max(times), "s"),
        ),
        judged_by=["cpu_factor", "cpu_min_s"],
        action=(
            "Check what the rank does in addition to the common work: logging, evaluation, "
            "checkpoints. If the rank has another role, such as distributing the work, the "
            "difference is normal."
        ),
    )


def _named(tasks: Sequence[_Task]) -> str:
    return capital(ranks_on((task.rank for task in tasks), (task.node for task in tasks)))
