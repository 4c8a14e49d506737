"""Options that can be copied into the batch script, for the scheduler of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from teho.devices.sources import selection
from teho.explain.places import NodeGpu
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


def use_gpus(scheduler: str | None, used: Sequence[NodeGpu], node_count: int) -> str:
    """Return how to request, or to show, only the GPUs that are used.

    Args:
        scheduler: of the run's allocation.
        used: the GPUs in use, at least one.
        node_count: number of nodes of the job.
    """
    nodes_used = Counter(gpu.node.name for gpu in used)
    per_node = max(nodes_used.values())
    fewer = len(nodes_used) if len(nodes_used) < node_count else None
    if option := scheduler_or_none(scheduler).advice.use_gpus(per_node, fewer):
        return option
    return f"set `{selection([gpu.gpu.device for gpu in used])}`"


def process_for_each(scheduler: str | None, node: NodeSummary, node_count: int) -> str:
    """Return how to start one process for each GPU of the run.

    Args:
        scheduler: of the run's allocation.
        node: one of its nodes.
        node_count: number of nodes of the job.
    """
    gpus = len(node.gpus)
    if node_count == 1:
        return f"`torchrun --nproc-per-node={gpus}`"
    option = scheduler_or_none(scheduler).advice.start_tasks(gpus)
    return option or f"`torchrun --nnodes={node_count} --nproc-per-node={gpus}`"


def ask_cores(run: Run, node: NodeSummary, per_node: int) -> str:
    """Return how to request a number of cores on each node.

    Empty without a scheduler, or if the cores come with the GPUs.
    """
    allocation = run.allocation(node.name)
    if "cores" in allocation.with_gpus:
        return ""
    tasks = _tasks_per_node(run, allocation.cores_asked)
    return scheduler_or_none(allocation.scheduler).advice.cores(per_node, tasks)


def ask_memory(allocation: Allocation, needed_bytes: float, cores: int) -> str:
    """Return how to request an amount of memory on each node; empty without a scheduler.

    Args:
        allocation: of the node.
        needed_bytes: memory for the whole node, margin included; rounded up to GiB.
        cores: slots by which Grid Engine multiplies its request.
    """
    return scheduler_or_none(allocation.scheduler).advice.memory(needed_bytes / GIB, cores)


def more_memory(run: Run, node: NodeSummary, needed_bytes: float | None) -> str:
    """Return how to get more memory for a node's job, or to use less."""
    allocation = run.allocation(node.name)
    less = "or use less memory: fewer loader workers or a smaller batch"
    if "memory" in allocation.with_gpus:
        return (
            "Request one more GPU (on this cluster, each GPU adds memory of the node to the job), "
            f"{less}."
        )
    if needed_bytes is None or allocation.scheduler is None:
        return f"Give the program more memory, {less}."
    more = ask_memory(allocation, needed_bytes, allocation.cores_asked or node.cores)
    whole_node = " on a node with enough memory" if node.memory_limit_source == "node" else ""
    return f"Request {more}{whole_node}, {less}."


def later_job(scheduler: str | None) -> str:
    """Return how to run the rest of the work in a separate job."""
    option = scheduler_or_none(scheduler).advice.later_job
    return option or "run the remaining work separately, so that other jobs can use the GPU"


def loader_workers(cores: int, gpus: int) -> int:
    """Return the number of loader workers that fit beside one training process per GPU.

    Lightning's formula (affinity ÷ ranks - 1): the node's cores ÷ GPUs, minus one for
    the training process, and at least 1.
    """
    return max(1, cores // max(gpus, 1) - 1)


def _tasks_per_node(run: Run, cores_asked: int | None) -> int | None:
    """Return Slurm's tasks on each node, by the request; None if the request does not say."""
    nodes = run.number("SLURM_JOB_NUM_NODES") or len(run.nodes)
    tasks = run.number("SLURM_NTASKS")
    if tasks and tasks >= nodes:
        return tasks // nodes
    each = run.number("SLURM_CPUS_PER_TASK")
    return max(1, cores_asked // each) if cores_asked and each else None
