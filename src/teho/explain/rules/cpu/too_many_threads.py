"""More threads could run than there were cores."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.context import (
    RuleContext,
    cores_of_job,
    each_of,
    in_lines,
    known,
    per_place,
    span,
)
from teho.explain.rule import Mutes
from teho.explain.wording import counted
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.program import Doing
from teho.model.summary import NodeSummary
from teho.model.watched import Frame

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "too_many_threads"
RANK = 480
SAYS = "more threads wanted to run than the job has cores"
SEVERITY = "warning"
THRESHOLDS = {
    "threads_per_core": Threshold(
        1.25, "threads", "Alliance portal: running threads ÷ cores above 1.25"
    ),
}
MUTES = Mutes(
    ("cores_unused", "input_too_few_workers", "input_in_main_process", "input_slow"),
    because="threads that take turns are slow at all they do",
)


class _Crowded(NamedTuple):
    node: NodeSummary
    threads: float
    """Mean of those that ran, or could have."""
    cores: int
    """The job's."""


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare the program's runnable threads with the job's cores.

    Threads that fit the job's cores are not too many, even if the program is bound to fewer
    cores: then the binding is at fault (`bound_to_few_cores`).
    """
    crowded: list[_Crowded] = []
    for node in context.summary.nodes:
        threads = context.stat(node, "job_runnable_threads")
        cores = cores_of_job(context.run, node)
        if threads is None or cores < 1:
            continue
        if threads.mean / cores > context.limit("threads_per_core"):
            crowded.append(_Crowded(node, threads.mean, cores))
    return context.outcome([_finding(context, crowded)] if crowded else [])


def _finding(context: RuleContext, crowded: list[_Crowded]) -> Finding:
    nodes = [one.node for one in crowded]
    per_core = [(one.node, one.threads / one.cores) for one in crowded]
    most = max(ratio for _, ratio in per_core)
    return context.finding(
        Severity.WARNING,
        f"On {each_of(nodes)}, on average {span([one.threads for one in crowded], '')} runnable "
        f"threads competed for {counted([one.cores for one in crowded], 'core')}.",
        evidence=(
            *per_place(
                "runnable threads, mean", "threads", [(one.node, one.threads) for one in crowded]
            ),
            *per_place("runnable threads per core", "", per_core),
            *in_lines(_lines(context, nodes)),
        ),
        judged_by=["threads_per_core"],
        action=_action(context, crowded[0]),
        subjects=nodes,
        # At the most, those that have no core hold up those that have one.
        regain_percent=(0.0, max(0.0, 100 * (1 - 1 / most))),
    )


def _lines(context: RuleContext, nodes: list[NodeSummary]) -> tuple[tuple[Frame, float], ...]:
    """Return the lines at which the first watched process there computed or loaded its data."""
    names = {node.name for node in nodes}
    mains = context.summary.program.mains if context.summary.program else ()
    own = (main for main in mains if main.process.node in names)
    return next((main.lines(Doing.NATIVE, Doing.THREADS, Doing.LOADING) for main in own), ())


def _action(context: RuleContext, crowded: _Crowded) -> str:
    return (
        "Limit the threads of each process before the program starts: "
        f"`export OMP_NUM_THREADS={_each(context, crowded)}`. If that is not enough, use fewer "
        "loader workers."
    )


def _each(context: RuleContext, crowded: _Crowded) -> int:
    """Return how many threads each process can have; a loader worker has one."""
    node, cores = crowded.node, crowded.cores
    mains = context.summary.program.mains if context.summary.program else ()
    own = [main for main in mains if main.process.node == node.name]
    if own:
        workers = sum(main.feed.workers for main in own)
        return max(1, (cores - workers) // len(own))
    processes = known([node], "job_processes", "mean")
    return max(1, int(cores // max(processes[0][1], 1))) if processes else cores
