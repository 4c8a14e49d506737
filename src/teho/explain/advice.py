"""Options that can be copied into the batch script, right for the scheduler of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from teho.devices.sources import selection
from teho.explain.context import NodeGpu, allocation_of
from teho.model.allocation import Allocation
from teho.model.run import Run
from teho.model.summary import NodeSummary
from teho.schedulers.registry import scheduler_or_none
from teho.units import GIB

__all__ = [
    "ask_cores",
    "ask_memory",
    "later_job",
    "loader_workers",
    "more_memory",
    "process_for_each",
    "use_gpus",
]


def use_gpus(scheduler: str | None, used: Sequence[NodeGpu], nodes_held: int) -> str:
    """Say how to hold only as many GPUs as are used.

    Args:
        scheduler: of the run's allocation.
        used: the GPUs in use, at least one.
        nodes_held: nodes that the job holds.
    """
    nodes_used = Counter(of.node.name for of in used)
    per_node = max(nodes_used.values())
    fewer = len(nodes_used) if len(nodes_used) < nodes_held else None
    if own := scheduler_or_none(scheduler).advice.use_gpus(per_node, fewer):
        return own
    return f"set `{selection([of.gpu.device for of in used])}`"


def process_for_each(scheduler: str | None, node: NodeSummary, nodes_held: int) -> str:
    """Say how to start one process for each GPU of the run.

    Args:
        scheduler: of the run's allocation.
        node: one of its nodes.
        nodes_held: nodes that the job holds.
    """
    gpus = len(node.gpus)
    if nodes_held == 1:
        return f"`torchrun --nproc-per-node={gpus}`"
    if own := scheduler_or_none(scheduler).advice.start_tasks(gpus):
        return own
    return f"`torchrun --nnodes={nodes_held} --nproc-per-node={gpus}`"


def ask_cores(run: Run, node: NodeSummary, per_node: int) -> str:
    """Say how to ask for a number of cores on each node; empty without a scheduler."""
    allocation = allocation_of(run, node.name)
    tasks = _tasks_per_node(run, allocation.cores_asked)
    return scheduler_or_none(allocation.scheduler).advice.cores(per_node, tasks)


def ask_memory(allocation: Allocation, needed_bytes: float, cores: int) -> str:
    """Say how to ask for an amount of memory on each node; empty without a scheduler.

    Args:
        allocation: of the node.
        needed_bytes: memory for the whole node, margin included; rounded up to GiB.
        cores: slots by which Grid Engine multiplies its request.
    """
    return scheduler_or_none(allocation.scheduler).advice.memory(needed_bytes / GIB, cores)


def more_memory(run: Run, node: NodeSummary, needed_bytes: float | None) -> str:
    """Say how to get a node's job more memory, or to need less."""
    allocation = allocation_of(run, node.name)
    less = "fewer loader workers or a smaller batch need less"
    if needed_bytes is None or allocation.scheduler is None:
        return f"Give it more memory, or let it need less: {less}."
    more = ask_memory(allocation, needed_bytes, allocation.cores_asked or node.cores)
    whole_node = " on a node that has it" if node.memory_limit_source == "node" else ""
    return f"Ask for {more}{whole_node}; or let it need less: {less}."


def later_job(scheduler: str | None) -> str:
    """Say how to run the rest of the work in a job of its own."""
    if own := scheduler_or_none(scheduler).advice.later_job():
        return own
    return "run the rest as a program of its own, so that others can have the GPU"


def loader_workers(cores: int, gpus: int) -> int:
    """Return how many loader processes fit beside one training process a GPU.

    Cores of the node ÷ GPUs, less one for the training process: the formula of
    Lightning's suggestion (affinity ÷ ranks - 1), and at least 1.
    """
    return max(1, cores // max(gpus, 1) - 1)


def _tasks_per_node(run: Run, cores_asked: int | None) -> int | None:
    """Work out Slurm's tasks on each node from the request; None if it tells too little."""
    nodes = _positive(run, "SLURM_JOB_NUM_NODES") or len(run.nodes)
    tasks = _positive(run, "SLURM_NTASKS")
    if tasks and tasks >= nodes:
        return tasks // nodes
    each = _positive(run, "SLURM_CPUS_PER_TASK")
    return max(1, cores_asked // each) if cores_asked and each else None


def _positive(run: Run, variable: str) -> int | None:
    text = run.environment.get(variable, "")
    return (int(text) or None) if text.isdecimal() else None
