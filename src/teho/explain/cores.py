"""How many cores the allocation has on a node, also if a program was bound to fewer of them."""

from __future__ import annotations

from teho.model.run import Node, Run
from teho.schedulers.registry import scheduler_or_none

__all__ = ["allocated_cores", "cores_given", "may_be_threads"]


def allocated_cores(run: Run, node: Node) -> int:
    """Return the number of a node's cores that are the job's.

    The recorded cores are those that the program might run on when the recording began. They can
    be more than the job's: a scheduler need not bind. They can be fewer: the program or its
    launcher was faster and bound it to a part. Twice as many CPUs as cores is usual on nodes with
    two hardware threads a core, and not a binding: there the recorded cores count.
    """
    seen, asked = len(node.cores), node.allocation.cores_asked
    if not asked or asked <= seen:
        return asked or seen
    given = cores_given(run, node)
    return given if given and not may_be_threads(seen, given) else seen


def cores_given(run: Run, node: Node) -> int | None:
    """Return the cores that a scheduler gave to what is recorded; None if that is not known.

    Of a step of which only one of several tasks is recorded, the task's share is not known.
    """
    if not scheduler_or_none(node.allocation.scheduler).reports_cores:
        return None
    return None if _tasks_beside(run) and not run.has_tasks else node.allocation.cores_asked


def may_be_threads(cores: int, asked: int) -> bool:
    """Return whether a scheduler may count two hardware threads for each of these cores."""
    return asked == 2 * cores


def _tasks_beside(run: Run) -> bool:
    """Return whether the scheduler's step has several tasks on a node."""
    tasks, nodes = (
        run.environment.get(name, "") for name in ("SLURM_NTASKS", "SLURM_JOB_NUM_NODES")
    )
    count = int(tasks) if tasks.isdecimal() else 1
    return count > (int(nodes) if nodes.isdecimal() else max(1, len(run.nodes)))
