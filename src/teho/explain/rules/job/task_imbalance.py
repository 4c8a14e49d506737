"""The tasks of one step end far apart, or differ much in CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from teho.explain.context import RuleContext, span
from teho.explain.step import failed
from teho.explain.wording import capital, ranks_on
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.units import format_duration

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "task_imbalance"
RANK = 370
SAYS = "one of several tasks ended sooner or later than the others, or used more or less CPU time"
SEVERITY = "warning; CPU time remark"
THRESHOLDS = {
    "end_percent": Threshold(
        10.0, "%", "TraceML: a rank that is off by 10 % of a step gets a warning"
    ),
    "cpu_factor": Threshold(
        2.0, "times", "Teho's own choice: twice the CPU time of the others is another kind of work"
    ),
    "cpu_min_s": Threshold(
        60.0, "s", "Teho's own choice: start-up and logging of one rank may take some of it"
    ),
}


class _Told(NamedTuple):
    """A task that ended well."""

    rank: int
    node: str
    end_s: float
    cpu_s: float


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare the tasks of a step that all ended well, each with the median of them."""
    tasks = [
        _Told(task.rank, task.node, context.run.moment_s(task.node, task.end.at), task.end.cpu_s)
        for task in context.run.tasks
        if task.end is not None and task.end.cpu_s is not None and not failed(task.end)
    ]
    if context.run.step is None or len(tasks) < max(2, context.run.step.task_count):
        return []
    findings = (_by_ends(context, tasks), _by_cpu_time(context, tasks))
    return context.outcome([finding for finding in findings if finding is not None])


def _by_ends(context: RuleContext, tasks: Sequence[_Told]) -> Finding | None:
    ends = [task.end_s for task in tasks]
    middle_s = median(ends)
    far_s = context.limit("end_percent") / 100 * context.summary.elapsed_s
    late = [task for task in tasks if task.end_s - middle_s > far_s]
    odd = late or [task for task in tasks if middle_s - task.end_s > far_s]
    if not odd:
        return None
    apart_s = max(abs(task.end_s - middle_s) for task in odd)
    return context.finding(
        Severity.WARNING,
        f"{_named(odd)} ended {format_duration(apart_s)} {'after' if late else 'before'} half of "
        f"the {len(tasks)} tasks had.",
        evidence=(
            Evidence("first task ended after", min(ends), "s"),
            Evidence("half of the tasks had ended after", middle_s, "s"),
            Evidence("last task ended after", max(ends), "s"),
        ),
        judged_by=["end_percent"],
        action=(
            "What ends late keeps all nodes allocated: give all ranks the same amount of work, "
            "or the rest of it to a job of its own."
        ),
    )


def _by_cpu_time(context: RuleContext, tasks: Sequence[_Told]) -> Finding | None:
    middle_s = median(task.cpu_s for task in tasks)
    factor, least_s = context.limit("cpu_factor"), context.limit("cpu_min_s")
    odd = [
        task
        for task in tasks
        if abs(task.cpu_s - middle_s) >= least_s
        and max(task.cpu_s, middle_s) >= factor * min(task.cpu_s, middle_s)
    ]
    if not odd:
        return None
    return context.finding(
        Severity.REMARK,
        f"{_named(odd)} used {span([task.cpu_s for task in odd], 's')} of CPU time, half of the "
        f"{len(tasks)} tasks at most {format_duration(middle_s)}.",
        evidence=(
            Evidence("CPU time of a task, lowest", min(task.cpu_s for task in tasks), "s"),
            Evidence("CPU time of a task, median", middle_s, "s"),
            Evidence("CPU time of a task, highest", max(task.cpu_s for task in tasks), "s"),
        ),
        judged_by=["cpu_factor", "cpu_min_s"],
        action=(
            "As it should be where a rank has another part, such as handing out work. Else see "
            "what it does beside the others' work: logging, evaluation, checkpoints."
        ),
    )


def _named(tasks: Sequence[_Told]) -> str:
    return capital(ranks_on((task.rank for task in tasks), (task.node for task in tasks)))
