"""How a request lies on nodes: GPUs a node, tasks, cores, memory, time."""

from __future__ import annotations

import math
from functools import cache

import msgspec

from teho.model.cluster import Automatic, Cluster, NodeKind, Partition, Share
from teho.model.request import DEFAULT_TIME_S, Request
from teho.units import parse_duration, parse_mib

__all__ = ["Case", "Shape", "case_of", "fewest_nodes", "memory_mib", "seconds"]

_TASK_PER_GPU = frozenset({"launch", "srun", "horovod"})
"""Launchers whose processes the scheduler starts; the others start their own on each node."""

seconds = cache(parse_duration)
"""`parse_duration`, remembered: a catalogue has few different limits and many plans."""
_mib = cache(parse_mib)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A request laid out on one kind of node."""

    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    cpus_per_task: int
    memory_mib: int | None
    """Of each node; None: the request does not name it."""
    time_s: float

    @property
    def cores_per_node(self) -> int:
        """Cores of each node."""
        return self.tasks_per_node * self.cpus_per_task


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One request on one kind of node of one partition: what limits, traps and bills look at."""

    request: Request
    cluster: Cluster
    partition: Partition
    kind: NodeKind
    share: Share | None
    """The documented fair share for one GPU of this kind."""
    automatic: tuple[Automatic, ...]
    """What comes by itself and must not be named."""
    most_per_node: int | None
    """GPUs that a job can have on one node. None: not documented."""
    shape: Shape

    @property
    def memory_is_left_to_the_site(self) -> bool:
        """Whether the request names no memory, and nothing else brings a known amount."""
        named = self.shape.memory_mib is not None or "memory" in self.automatic
        return not named and not self.has_whole_nodes

    @property
    def has_whole_nodes(self) -> bool:
        """Whether no other job can run on the nodes, so that they are given and billed whole."""
        return self.partition.exclusive or self.request.exclusive

    @property
    def default_memory_mib(self) -> int | None:
        """Memory of each node where it is left to the site. None: not so, or not documented."""
        each = self.cluster.dialect.default_memory_per_core
        if not self.memory_is_left_to_the_site or each is None:
            return None
        return _mib(each) * self.shape.cores_per_node

    @property
    def billed_memory_is_unknown(self) -> bool:
        """Whether the site bills memory, and nobody knows how much this job will have."""
        billing = self.cluster.billing.get(self.partition.billing)
        if billing is None or not self.memory_is_left_to_the_site:
            return False
        terms = (*billing.sum, *billing.largest)
        return self.default_memory_mib is None and any(term.of == "memory_gib" for term in terms)

    @property
    def usable_cores(self) -> int:
        """Cores of a node that jobs can have."""
        return self.kind.usable_cores or self.kind.cores


def case_of(request: Request, cluster: Cluster, partition: Partition, kind: NodeKind) -> Case:
    """Lay a request out on a kind of node, filling what it does not say with the fair share.

    Limits are not looked at: what comes out may be too large for the partition.
    """
    share = _share_of(cluster, kind)
    automatic = _automatic(cluster, partition, share)
    most = _most_per_node(partition, kind)
    nodes = request.nodes or fewest_nodes(request.gpus, most)
    gpus_per_node = math.ceil(request.gpus / nodes)
    tasks = _tasks_per_node(request, cluster, gpus_per_node)
    cores = _cores_per_node(request, partition, kind, share, nodes, gpus_per_node)
    shape = Shape(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        tasks_per_node=tasks,
        cpus_per_task=max(1, cores // tasks),
        memory_mib=None
        if "memory" in automatic
        else _memory(request, partition, kind, share, gpus_per_node),
        time_s=_time(request, partition),
    )
    return Case(
        request=request,
        cluster=cluster,
        partition=partition,
        kind=kind,
        share=share,
        automatic=automatic,
        most_per_node=most,
        shape=shape,
    )


def memory_mib(text: str | None) -> int | None:
    """Return a catalogue's amount of memory in MiB; None where it has none."""
    return None if text is None else _mib(text)


def fewest_nodes(gpus: int, per_node_most: int | None) -> int:
    """Return the fewest nodes on which the GPUs lie evenly; 1 where a node's most is not known."""
    if gpus == 0 or not per_node_most:
        return 1
    fewest = math.ceil(gpus / per_node_most)
    # Divisors come in pairs, so that even an absurd number is soon laid out.
    small = [count for count in range(1, math.isqrt(gpus) + 1) if gpus % count == 0]
    return min(n for count in small for n in (count, gpus // count) if n >= fewest)


def _share_of(cluster: Cluster, kind: NodeKind) -> Share | None:
    if kind.gpu is None:
        return None
    for share in cluster.shares:
        if share.gpu == kind.gpu.type:
            return share
    return None


def _tasks_per_node(request: Request, cluster: Cluster, gpus_per_node: int) -> int:
    if request.launcher == "launch" and cluster.scheduler != "slurm":
        return 1  # Grid Engine starts the script, and nothing there starts tasks
    return gpus_per_node if request.launcher in _TASK_PER_GPU and gpus_per_node else 1


def _automatic(
    cluster: Cluster, partition: Partition, share: Share | None
) -> tuple[Automatic, ...]:
    found = {*partition.automatic, *(share.automatic if share else ())}
    if cluster.dialect.memory == "none":
        found.add("memory")
    return tuple(sorted(found))


def _most_per_node(partition: Partition, kind: NodeKind) -> int | None:
    known = [
        count
        for count in (
            partition.max_gpus_per_node,
            kind.gpu.count if kind.gpu else 0,
            kind.gpu.max_per_job if kind.gpu else None,
        )
        if count is not None
    ]
    return min(known, default=None)


def _cores_per_node(
    request: Request,
    partition: Partition,
    kind: NodeKind,
    share: Share | None,
    nodes: int,
    gpus_per_node: int,
) -> int:
    usable = kind.usable_cores or kind.cores
    if request.gpus and request.cpus_per_gpu is not None:
        return request.cpus_per_gpu * gpus_per_node
    if request.cpus is not None:
        return math.ceil(request.cpus / nodes)
    if partition.exclusive or request.exclusive:
        return usable
    if kind.gpu is None or request.gpus == 0:
        return 1
    if share is not None and share.cores is not None:
        return share.cores * gpus_per_node
    # A slice's part of a node is not known: one core is what no site refuses.
    return max(1, usable * gpus_per_node // kind.gpu.count) if kind.gpu.count else 1


def _memory(
    request: Request,
    partition: Partition,
    kind: NodeKind,
    share: Share | None,
    gpus_per_node: int,
) -> int | None:
    if request.memory_mib is not None:
        return request.memory_mib
    if partition.exclusive or request.exclusive:
        return memory_mib(kind.memory)
    if share is not None and share.memory is not None:
        return _mib(share.memory) * gpus_per_node
    return None


def _time(request: Request, partition: Partition) -> float:
    """Return the time to plan: what is asked for, or an hour where the partition allows it."""
    if request.time_s is not None:
        return request.time_s
    most = partition.max_time
    return DEFAULT_TIME_S if most is None else min(DEFAULT_TIME_S, seconds(most))
