"""One task of a step failed before, or otherwise than, the others."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.explain.rules._look import Look
from teho.explain.step import ending, failed
from teho.explain.wording import capital, joined, ranks_on
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import End, Run
from teho.model.summary import Summary
from teho.units import format_duration

__all__ = ["KIND", "judge"]

KIND = "task_failed"

_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""How users and schedulers end a job: what follows is no fault of the program."""


class _Failure(NamedTuple):
    at_s: float
    rank: int
    node: str
    end: End


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find the tasks with which a step's failure began.

    Of those that failed at the same moment it is the ones that ended otherwise than the rest.
    No task stands out where all failed alike and at once, as with a script that does not start,
    or where a signal from outside came first; how they ended is told anyway.
    """
    look = Look(KIND, run, summary, thresholds)
    failures = sorted(
        _Failure(run.moment_s(task.node, task.end.at), task.rank, task.node, task.end)
        for task in run.tasks
        if task.end is not None and failed(task.end)
    )
    if run.step is None or not failures or failures[0].end.signal in _FROM_OUTSIDE:
        return []
    first = _first(failures, look.limit("first_by_s") + _uncertainty_s(run))
    if len(first) == run.step.task_count:
        return []
    return look.outcome([_finding(look, run.step.task_count, failures, first)])


def _uncertainty_s(run: Run) -> float:
    """Return how far apart two nodes' clocks may still be, once their offsets are allowed for."""
    return 2 * max((node.clock.uncertainty_s for node in run.nodes if node.clock), default=0.0)


def _first(failures: Sequence[_Failure], within_s: float) -> list[_Failure]:
    together = [one for one in failures if one.at_s - failures[0].at_s <= within_s]
    alike: dict[str, list[_Failure]] = {}
    for one in together:
        alike.setdefault(ending(one.end), []).append(one)
    return min(alike.values(), key=len)


def _finding(
    look: Look, tasks: int, failures: Sequence[_Failure], first: Sequence[_Failure]
) -> Finding:
    names = ranks_on((one.rank for one in first), (one.node for one in first))
    after_s = max(0.0, first[0].at_s)
    told_well = sum(task.end is not None and not failed(task.end) for task in look.run.tasks)
    others = _others(tasks - len(first), told_well, len(failures) - len(first))
    return look.finding(
        Severity.CRITICAL,
        f"{capital(names)} {_how(first)} after {format_duration(after_s)}{others}.",
        evidence=(
            Evidence("ended first", names),
            Evidence("how", ending(first[0].end)),
            Evidence("after", after_s, "s"),
            Evidence("tasks that failed", float(len(failures))),
            Evidence("tasks that succeeded", float(told_well)),
            Evidence("tasks of the step", float(tasks)),
        ),
        judged_by=["first_by_s"],
        action=_action(look, first),
    )


def _how(first: Sequence[_Failure]) -> str:
    end = first[0].end
    if end.signal is None:
        return f"exited with {end.exit_code}"
    return f"{'was' if len(first) == 1 else 'were'} ended {ending(end)}"


def _others(count: int, well: int, ill: int) -> str:
    """Say what became of the other tasks; empty where there are none."""
    parts = [
        (number, words)
        for number, words in (
            (ill, "failed too"),
            (well, "exited with 0"),
            (count - well - ill, "told no end"),
        )
        if number
    ]
    if len(parts) == 1:
        return f"; the other {f'{count} tasks' if count > 1 else 'task'} {parts[0][1]}"
    each = [f"{number} {words}" for number, words in parts]
    return f"; of the other {count} tasks {joined(each)}" if each else ""


def _action(look: Look, first: Sequence[_Failure]) -> str:
    rank, end = first[0].rank, first[0].end
    job = next((n.allocation.job_id for n in look.run.nodes if n.allocation.job_id), None)
    if end.signal == signal.SIGKILL:
        accounts = {"slurm": f"sacct -j {job} -o JobID,State,ExitCode,MaxRSS",
                    "grid_engine": f"qacct -j {job}"}  # fmt: skip
        asked = accounts.get(look.scheduler or "") if job else None
        ask = f": `{asked}` may tell" if asked else ""
        return f"The kernel, for want of memory, or the scheduler ended it{ask}."
    apart = ""
    if look.scheduler == "slurm":
        apart = ", `srun --output=job-%j-%t.log` gives each task a log of its own"
    return (
        f"Begin with what rank {rank} wrote last{apart}. What the other tasks complain of after "
        "that may only follow from it."
    )
