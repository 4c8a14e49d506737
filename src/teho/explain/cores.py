"""The number of cores that a job has on a node, also if the program is bound to fewer cores."""

from __future__ import annotations

from teho.explain.places import stats_of
from teho.model.run import Node, Run
from teho.model.summary import NodeSummary, Stat
from teho.schedulers.registry import scheduler_or_none

__all__ = ["allocated_cores", "cores_given", "cores_of_job", "cores_of_others", "may_be_threads"]


def allocated_cores(run: Run, node: Node) -> int:
    """Return the number of a node's cores that the job has.

    The recorded cores are the cores on which the program could run when the recording began. They
    can be more than the job's: a scheduler need not bind. They can be fewer: the program or its
    launcher may have bound itself to a part before. Some nodes count two hardware threads per core:
    if the scheduler reports twice the recorded cores, the recorded number is used.
    """
    recorded, asked = len(node.cores), node.allocation.cores_asked
    if not asked or asked <= recorded:
        return asked or recorded
    given = cores_given(run, node)
    return given if given and not may_be_threads(recorded, given) else recorded


def cores_given(run: Run, node: Node) -> int | None:
    """Return the cores that the scheduler gave to the recorded tasks; None if it is not known.

    If only one of several tasks of a step is recorded, the share of this task is not known.
    """
    if not scheduler_or_none(node.allocation.scheduler).reports_cores:
        return None
    return None if _tasks_beside(run) and not run.has_tasks else node.allocation.cores_asked


def cores_of_job(run: Run, node: NodeSummary) -> int:
    """Return the number of cores that the job has on a node, by the recording or the scheduler."""
    given = [cores_given(run, one) for one in run.nodes if one.name == node.name]
    return max(node.cores, *(cores or 0 for cores in given), 0)


def cores_of_others(run: Run, node: NodeSummary) -> float | None:
    """Return how many of a job's cores other programs kept busy; None if it is not known.

    If the program may run on more cores than the job has, other programs may use the cores that do
    not belong to the job.
    """
    busy, used = stats_of(node).get("cpu_busy_percent"), node.cpu_cores_used
    if not isinstance(busy, Stat) or not isinstance(used, float) or node.cores < 1:
        return None
    recorded = run.node(node.name)
    may_use = (len(recorded.cores) if recorded else 0) or node.cores
    return busy.mean / 100 * may_use - used - max(0, may_use - node.cores)


def may_be_threads(cores: int, asked: int) -> bool:
    """Return whether the scheduler may count two hardware threads for each of these cores."""
    return asked == 2 * cores


def _tasks_beside(run: Run) -> bool:
    """Return whether the scheduler's step has several tasks on a node."""
    nodes = run.number("SLURM_JOB_NUM_NODES") or max(1, len(run.nodes))
    return (run.number("SLURM_NTASKS") or 1) > nodes
