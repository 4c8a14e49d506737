"""The run failed: how it ended, and of several tasks, with which of them the failure began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from teho.explain.context import Located, RuleContext
from teho.explain.endings import BY_USERS, EndEvidence, Meaning, meaning_of, named, number_of
from teho.explain.step import ending, failed
from teho.explain.wording import capital, joined, ranks_on
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.run import End, Run
from teho.units import format_duration

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "run_failed"
RANK = 10
SAYS = (
    "how a failed run ended: exit code, signal, exception; if there are several tasks, which "
    "failed first"
)
SEVERITY = "critical; if a user ends runs in this way, warning"
THRESHOLDS = {
    "first_by_s": Threshold(
        1.0, "s", "Teho's own choice: if tasks end within a second, the first of them is not known"
    ),
    "time_limit_percent": Threshold(
        95.0, "%", "Teho's own choice: a job does something before the run begins"
    ),
}


class _Failure(NamedTuple):
    at_s: float
    rank: int
    node: str
    end: End


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Say how a run ended that failed; this finding is always the report's first.

    If some tasks of a step began it, they are named: the ones that failed first, and of those
    that failed at the same moment the ones that ended otherwise than the rest.
    """
    failures = sorted(
        _Failure(
            max(0.0, context.run.moment_s(task.node, task.end.at)), task.rank, task.node, task.end
        )
        for task in context.run.tasks
        if task.end is not None and failed(task.end)
    )
    if context.run.step is None or not context.run.has_tasks or not failures:
        return (
            [_whole(context, context.run.end)]
            if context.run.end is not None and failed(context.run.end)
            else []
        )
    first = _first(failures, context.limit("first_by_s") + _uncertainty_s(context.run))
    stands_out = len(first) < context.run.step.task_count and failures[0].end.signal not in BY_USERS
    if stands_out:
        return [_some(context, context.run.step.task_count, failures, first)]
    return [_all(context, context.run.step.task_count, failures)]


def _whole(context: RuleContext, end: End) -> Located:
    seen = _seen(context, end, end.elapsed_s)
    meaning = meaning_of(end, end.elapsed_s, seen)
    who = "The job" if end.job_state else "The program"
    return _finding(context, f"{who} {meaning.how}.", meaning, end, end.elapsed_s, seen)


def _all(context: RuleContext, tasks: int, failures: Sequence[_Failure]) -> Located:
    """Name how all of them ended, or if they differ, the first."""
    first = failures[0]
    seen = _seen(context, first.end, first.at_s, [one.rank for one in failures])
    alike = all(ending(one.end) == ending(first.end) for one in failures)
    meaning = meaning_of(first.end, first.at_s, seen, several=alike)
    all_of_them = f"All {tasks} tasks" if tasks > 2 else "Both tasks"
    count = all_of_them if len(failures) == tasks else f"{len(failures)} of {tasks} tasks"
    who = count if alike else f"{count} failed: the first"
    return _finding(
        context,
        f"{who} {meaning.how}.",
        meaning,
        first.end,
        first.at_s,
        seen,
        *_counts(context, tasks, failures),
    )


def _some(
    context: RuleContext, tasks: int, failures: Sequence[_Failure], first: Sequence[_Failure]
) -> Located:
    names = ranks_on((one.rank for one in first), (one.node for one in first))
    end, after_s = first[0].end, first[0].at_s
    seen = _seen(context, end, after_s, [one.rank for one in first])
    meaning = meaning_of(end, after_s, seen)
    ended_well = _ended_well(context)
    others = _others(tasks - len(first), ended_well, len(failures) - len(first))
    return _finding(
        context,
        f"{capital(names)} {_how(first)} after {format_duration(after_s)}{named(seen)}{others}.",
        meaning._replace(action=_action(context, first[0], meaning)),
        end,
        after_s,
        seen,
        Evidence("ended first", names),
        *_counts(context, tasks, failures),
    )


def _finding(
    context: RuleContext,
    sentence: str,
    meaning: Meaning,
    end: End,
    after_s: float,
    seen: EndEvidence,
    *further: Evidence,
) -> Located:
    judged_by = ["first_by_s"] if further else []
    if seen.at_time_limit:
        judged_by.append("time_limit_percent")
    return context.finding(
        meaning.severity,
        sentence,
        evidence=(
            Evidence("ended", ending(end)),
            Evidence("after", after_s, "s"),
            *([Evidence("exception", seen.exception)] if seen.exception else []),
            *([Evidence("in your code at", seen.place)] if seen.place else []),
            *further,
        ),
        judged_by=judged_by,
        action=meaning.action,
    )


def _seen(
    context: RuleContext, end: End, after_s: float, ranks: Sequence[int | None] = (None,)
) -> EndEvidence:
    """Return what is known of an end beside it; the exception if it was the same on all ranks."""
    known = context.summary.exceptions
    alike = len({known[rank].text if rank in known else None for rank in ranks}) == 1
    raised = known.get(ranks[0]) if alike and number_of(end) is None else None
    allocations = [node.allocation for node in context.run.nodes]
    limits = [one.time_limit_s for one in allocations if one.time_limit_s]
    job = next((one for one in allocations if one.job_id), None)
    kills = [node.totals.get("oom_kills") for node in context.summary.nodes]
    share = context.limit("time_limit_percent") / 100
    return EndEvidence(
        at_time_limit=bool(limits) and after_s >= share * min(limits),
        out_of_memory=any(isinstance(one, (int, float)) and one > 0 for one in kills),
        exception=raised.text if raised else "",
        place=f"{Path(raised.at.file).name}:{raised.at.line}" if raised and raised.at else "",
        scheduler=context.scheduler,
        job_id=job.job_id if job else None,
        job_name=(job.job_name or "") if job else "",
    )


def _uncertainty_s(run: Run) -> float:
    """Return how far apart two nodes' clocks may still be, once their offsets are allowed for."""
    return 2 * max((node.clock.uncertainty_s for node in run.nodes if node.clock), default=0.0)


def _first(failures: Sequence[_Failure], within_s: float) -> list[_Failure]:
    together = [one for one in failures if one.at_s - failures[0].at_s <= within_s]
    alike: dict[str, list[_Failure]] = {}
    for one in together:
        alike.setdefault(ending(one.end), []).append(one)
    return min(alike.values(), key=len)


def _ended_well(context: RuleContext) -> int:
    return sum(task.end is not None and not failed(task.end) for task in context.run.tasks)


def _counts(context: RuleContext, tasks: int, failures: Sequence[_Failure]) -> tuple[Evidence, ...]:
    return (
        Evidence("tasks that failed", float(len(failures))),
        Evidence("tasks that succeeded", float(_ended_well(context))),
        Evidence("tasks of the step", float(tasks)),
    )


def _how(first: Sequence[_Failure]) -> str:
    end = first[0].end
    if end.signal is None:
        return f"failed with {ending(end)}"
    return f"{'was' if len(first) == 1 else 'were'} ended {ending(end)}"


def _others(count: int, well: int, ill: int) -> str:
    """Say how the other tasks ended; empty if there are none."""
    parts = [
        (number, words)
        for number, words in (
            (ill, "failed too"),
            (well, "succeeded"),
            (count - well - ill, "left no exit status"),
        )
        if number
    ]
    if len(parts) == 1:
        return f"; the other {f'{count} tasks' if count > 1 else 'task'} {parts[0][1]}"
    each = [f"{number} {words}" for number, words in parts]
    return f"; of the other {count} tasks {joined(each)}" if each else ""


def _action(context: RuleContext, first: _Failure, meaning: Meaning) -> str:
    if number_of(first.end) is not None or first.rank in context.summary.exceptions:
        return meaning.action
    own_log = context.scheduler_advice.log_of_each_task
    return (
        f"Read what rank {first.rank} printed last: the errors of other tasks are probably "
        f"consequences.{f' {own_log}' if own_log else ''}"
    )
