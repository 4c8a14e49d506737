"""More threads wanted to run than there were cores."""

from __future__ import annotations

from collections.abc import Mapping

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


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the program's runnable threads with the job's cores.

    Threads that fit the job's cores are not too many, even if the program is bound to fewer
    cores: then the binding is at fault (`bound_to_few_cores`).
    """
    look = Look(KIND, run, summary, thresholds)
    crowded: list[tuple[NodeSummary, float]] = []
    for node in summary.nodes:
        threads = look.stat(node, "job_runnable_threads")
        cores = cores_of_job(run, node)
        if threads is None or cores < 1:
            continue
        if threads.mean / cores > look.limit("threads_per_core"):
            crowded.append((node, threads.mean))
    return look.outcome([_finding(look, crowded)] if crowded else [])


def _finding(look: Look, crowded: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in crowded]
    per_core = [(node, threads / node.cores) for node, threads in crowded]
    most = max(ratio for _, ratio in per_core)
    return look.finding(
        Severity.WARNING,
        f"On {each_of(nodes)}, {span([threads for _, threads in crowded], '')} threads of the "
        f"program wanted to run on {counted([node.cores for node in nodes], 'core')}.",
        evidence=(
            *per_place("runnable threads, mean", "threads", crowded),
            *per_place("runnable threads a core", "", per_core),
            *in_lines(_lines(look, nodes)),
        ),
        judged_by=["threads_per_core"],
        action=_action(nodes[0]),
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


def _action(node: NodeSummary) -> str:
    processes = known([node], "job_processes", "mean")
    each = max(1, int(node.cores // max(processes[0][1], 1))) if processes else node.cores
    return (
        f"Give each process its share, `export OMP_NUM_THREADS={each}` before the program starts; "
        "start fewer loader workers; `torch.set_num_threads(1)` in processes that you start "
        "yourself."
    )
