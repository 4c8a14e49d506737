"""More threads could run than there were cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from teho.explain.rules._look import (
    Look,
    cores_of_job,
    each_of,
    in_lines,
    known,
    per_place,
    span,
)
from teho.explain.wording import counted
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary
from teho.model.watched import Frame

__all__ = ["KIND", "judge"]

KIND = "too_many_threads"


class _Crowded(NamedTuple):
    node: NodeSummary
    threads: float
    """Mean of those that ran, or could have."""
    cores: int
    """The job's."""


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the program's runnable threads with the job's cores.

    Threads that fit the job's cores are not too many, even if the program is bound to fewer
    cores: then the binding is at fault (`bound_to_few_cores`).
    """
    look = Look(KIND, run, summary, thresholds)
    crowded: list[_Crowded] = []
    for node in summary.nodes:
        threads = look.stat(node, "job_runnable_threads")
        cores = cores_of_job(run, node)
        if threads is None or cores < 1:
            continue
        if threads.mean / cores > look.limit("threads_per_core"):
            crowded.append(_Crowded(node, threads.mean, cores))
    return look.outcome([_finding(look, crowded)] if crowded else [])


def _finding(look: Look, crowded: list[_Crowded]) -> Finding:
    nodes = [one.node for one in crowded]
    per_core = [(one.node, one.threads / one.cores) for one in crowded]
    most = max(ratio for _, ratio in per_core)
    return look.finding(
        Severity.WARNING,
        f"On {each_of(nodes)}, on average {span([one.threads for one in crowded], '')} runnable "
        f"threads competed for {counted([one.cores for one in crowded], 'core')}.",
        evidence=(
            *per_place(
                "runnable threads, mean", "threads", [(one.node, one.threads) for one in crowded]
            ),
            *per_place("runnable threads per core", "", per_core),
            *in_lines(_lines(look, nodes)),
        ),
        judged_by=["threads_per_core"],
        action=_action(look, crowded[0]),
        subjects=nodes,
        # At the most, those that have no core hold up those that have one.
        regain_percent=(0.0, max(0.0, 100 * (1 - 1 / most))),
    )


def _lines(look: Look, nodes: list[NodeSummary]) -> tuple[tuple[Frame, float], ...]:
    """Return the lines at which the first watched process there computed or loaded its data."""
    names = {node.name for node in nodes}
    mains = look.summary.program.mains if look.summary.program else ()
    own = (main for main in mains if main.process.node in names)
    return next((main.lines(Doing.NATIVE, Doing.THREADS, Doing.LOADING) for main in own), ())


def _action(look: Look, crowded: _Crowded) -> str:
    return (
        "Limit the threads of each process before the program starts: "
        f"`export OMP_NUM_THREADS={_each(look, crowded)}`. If that is not enough, use fewer loader "
        "workers."
    )


def _each(look: Look, crowded: _Crowded) -> int:
    """Return how many threads each process can have; a loader worker has one."""
    node, cores = crowded.node, crowded.cores
    mains = look.summary.program.mains if look.summary.program else ()
    own = [main for main in mains if main.process.node == node.name]
    if own:
        workers = sum(main.feed.workers for main in own)
        return max(1, (cores - workers) // len(own))
    processes = known([node], "job_processes", "mean")
    return max(1, int(cores // max(processes[0][1], 1))) if processes else cores
