"""How a failed run ended: exit code, signal or exception, and which task failed first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from teho.explain.endings import BY_USERS, EndEvidence, Meaning, meaning_of, named, number_of
from teho.explain.rule import Certainty, Evidence, Findings, Located, RuleContext, chosen
from teho.explain.step import ending, failed
from teho.explain.wording import capital, joined, ranks_on
from teho.model.run import End, Run
from teho.units import format_duration

RANK = 10
SEVERITY = "critical; warning if users often end runs in this way"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "first_by_s": chosen(
        1.0,
        "s",
        "if several tasks end within one second, Teho does not know which task ended first",
    ),
    "time_limit_percent": chosen(
        95.0,
        "%",
        "a run that is ended later than this share of the job's time limit was probably ended by "
        "the time limit; the job may need the first 5 % for commands before the run",
    ),
}


class _Failure(NamedTuple):
    at_s: float
    rank: int
    node: str
    end: End


def judge(context: RuleContext) -> Findings:
    """Say how a run ended that failed; this finding is always the report's first.

    If some tasks of a step failed first, the finding names these tasks. If several tasks failed at
    the same moment, it names the tasks that ended in another way than the other tasks.
    """
    run = context.run
    failures = sorted(
        _Failure(max(0.0, run.moment_s(task.node, task.end.at)), task.rank, task.node, task.end)
        for task in run.tasks
        if task.end is not None and failed(task.end)
    )
    if run.step is None or not run.has_tasks or not failures:
        if run.end is not None and failed(run.end):
            known = _known(context, run.end, run.end.elapsed_s)
            meaning = meaning_of(known)
            who = "The job" if run.end.job_state else "The program"
            yield _finding(context, f"{who} {meaning.how}.", meaning, known)
        return
    first = _first(failures, context.limit("first_by_s") + _uncertainty_s(run))
    if len(first) < run.step.task_count and failures[0].end.signal not in BY_USERS:
        yield _some(context, run.step.task_count, failures, first)
    else:
        yield _all(context, run.step.task_count, failures)


def _all(context: RuleContext, tasks: int, failures: Sequence[_Failure]) -> Located:
    """Build the finding about all failed tasks; if they ended differently, about the first."""
    known = _known(context, failures[0].end, failures[0].at_s, [one.rank for one in failures])
    alike = len({ending(one.end) for one in failures}) == 1
    meaning = meaning_of(known, several=alike)
    count = f"{len(failures)} of {tasks} tasks"
    if len(failures) == tasks:
        count = f"All {tasks} tasks" if tasks > 2 else "Both tasks"
    who = count if alike else f"{count} failed: the first"
    counts = _counts(context, tasks, failures)
    return _finding(context, f"{who} {meaning.how}.", meaning, known, *counts)


def _some(
    context: RuleContext, tasks: int, failures: Sequence[_Failure], first: Sequence[_Failure]
) -> Located:
    """Build the finding about the tasks that failed first."""
    names = ranks_on((one.rank for one in first), (one.node for one in first))
    end, after_s = first[0].end, first[0].at_s
    known = _known(context, end, after_s, [one.rank for one in first])
    how = f"{'was' if len(first) == 1 else 'were'} ended {ending(end)}"
    if end.signal is None:
        how = f"failed with {ending(end)}"
    others = _others(tasks - len(first), _succeeded(context), len(failures) - len(first))
    return _finding(
        context,
        f"{capital(names)} {how} after {format_duration(after_s)}{named(known)}{others}.",
        meaning_of(known)._replace(action=_action(context, first[0], known)),
        known,
        Evidence("task that ended first", names),
        *_counts(context, tasks, failures),
    )


def _finding(
    context: RuleContext, sentence: str, meaning: Meaning, known: EndEvidence, *further: Evidence
) -> Located:
    judged_by = ["first_by_s"] if further else []
    if known.at_time_limit:
        judged_by.append("time_limit_percent")
    return context.finding(
        meaning.severity,
        sentence,
        evidence=(
            _how_it_ended(known.end),
            Evidence("ended after", known.after_s, "s"),
            *([Evidence("exception", known.exception)] if known.exception else []),
            *([Evidence("line of your code", known.place)] if known.place else []),
            *further,
        ),
        judged_by=judged_by,
        action=meaning.action,
    )


def _how_it_ended(end: End) -> Evidence:
    """Return how a program ended; label and value are read together."""
    if end.signal is not None:
        label = "ended"
    else:
        label = "ended with" if end.exit_code is not None else "reason for the end"
    return Evidence(label, ending(end))


def _known(
    context: RuleContext, end: End, after_s: float, ranks: Sequence[int | None] = (None,)
) -> EndEvidence:
    """Return what is known about an end; with the exception if all ranks raised the same."""
    exceptions = context.summary.exceptions
    texts = {exceptions[rank].text if rank in exceptions else None for rank in ranks}
    raised = exceptions.get(ranks[0]) if len(texts) == 1 and number_of(end) is None else None
    allocations = [node.allocation for node in context.run.nodes]
    limit_s = context.run.limit_s
    job = next((one for one in allocations if one.job_id), None)
    kills = [node.totals.get("oom_kills") for node in context.summary.nodes]
    share = context.limit("time_limit_percent") / 100
    return EndEvidence(
        end=end,
        after_s=after_s,
        at_time_limit=limit_s is not None and after_s >= share * limit_s,
        out_of_memory=any(isinstance(one, (int, float)) and one > 0 for one in kills),
        exception=raised.text if raised else "",
        place=f"{Path(raised.at.file).name}:{raised.at.line}" if raised and raised.at else "",
        scheduler=context.scheduler,
        job_id=job.job_id if job else None,
        job_name=(job.job_name or "") if job else "",
    )


def _uncertainty_s(run: Run) -> float:
    """Return the largest possible difference of two nodes' clocks, after correction."""
    return 2 * max((node.clock.uncertainty_s for node in run.nodes if node.clock), default=0.0)


def _first(failures: Sequence[_Failure], within_s: float) -> list[_Failure]:
    together = [one for one in failures if one.at_s - failures[0].at_s <= within_s]
    alike: dict[str, list[_Failure]] = {}
    for one in together:
        alike.setdefault(ending(one.end), []).append(one)
    return min(alike.values(), key=len)


def _succeeded(context: RuleContext) -> int:
    return sum(task.end is not None and not failed(task.end) for task in context.run.tasks)


def _counts(context: RuleContext, tasks: int, failures: Sequence[_Failure]) -> tuple[Evidence, ...]:
    return (
        Evidence("tasks that failed", float(len(failures))),
        Evidence("tasks that succeeded", float(_succeeded(context))),
        Evidence("tasks of the job step", float(tasks)),
    )


def _others(count: int, succeeded: int, failed_too: int) -> str:
    """Return how the other tasks ended, for a sentence; empty without other tasks."""
    parts = [
        (number, words)
        for number, words in (
            (failed_too, "failed too"),
            (succeeded, "succeeded"),
            (count - succeeded - failed_too, "left no exit status"),
        )
        if number
    ]
    if len(parts) == 1:
        return f"; the other {f'{count} tasks' if count > 1 else 'task'} {parts[0][1]}"
    of_all = f" of the other {count} tasks"
    each = [f"{number}{'' if i else of_all} {words}" for i, (number, words) in enumerate(parts)]
    return f"; {joined(each)}" if each else ""


def _action(context: RuleContext, first: _Failure, known: EndEvidence) -> str:
    if number_of(first.end) is not None or first.rank in context.summary.exceptions:
        return meaning_of(known).action
    log = context.scheduler_advice.log_of_each_task
    return (
        f"Read what rank {first.rank} printed last: its failure probably caused the errors of the "
        f"other tasks.{f' {log}' if log else ''}"
    )
