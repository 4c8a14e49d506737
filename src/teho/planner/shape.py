"""How a request lies on nodes: GPUs a node, tasks, cores, memory."""

from __future__ import annotations

import math

import msgspec

from teho.model.cluster import Cluster, NodeKind, Partition, Share
from teho.model.request import Request

__all__ = ["Shape", "shape_of", "share_of"]

_TASK_PER_GPU = frozenset({"srun", "horovod"})
"""Launchers whose processes the scheduler starts; the others start their own on each node."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A request laid out on one kind of node."""

    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    cpus_per_task: int
    memory_gib: float | None
    """Of each node; None: the request does not name it."""

    @property
    def cores_per_node(self) -> int:
        """Cores of each node."""
        return self.tasks_per_node * self.cpus_per_task


def share_of(cluster: Cluster, kind: NodeKind) -> Share | None:
    """Return the documented fair share for one GPU of a kind of node."""
    if kind.gpu is None:
        return None
    return next((share for share in cluster.shares if share.gpu == kind.gpu.type), None)


def shape_of(request: Request, cluster: Cluster, partition: Partition, kind: NodeKind) -> Shape:
    """Lay a request out on a kind of node, filling what it does not say with the fair share.

    Limits are not looked at: what comes out may be too large for the partition.
    """
    per_node_most = kind.gpu.count if kind.gpu else 0
    if partition.max_gpus_per_node is not None:
        per_node_most = min(per_node_most, partition.max_gpus_per_node)
    nodes = request.nodes or _fewest_nodes(request.gpus, per_node_most)
    gpus_per_node = math.ceil(request.gpus / nodes)
    tasks = gpus_per_node if request.launcher in _TASK_PER_GPU and gpus_per_node else 1
    cores = _cores_per_node(request, cluster, partition, kind, nodes, gpus_per_node)
    return Shape(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        tasks_per_node=tasks,
        cpus_per_task=max(1, cores // tasks),
        memory_gib=_memory(request, cluster, partition, kind, gpus_per_node),
    )


def _fewest_nodes(gpus: int, per_node_most: int) -> int:
    """Return the fewest nodes on which the GPUs lie evenly."""
    if gpus == 0 or per_node_most == 0:
        return 1
    fewest = math.ceil(gpus / per_node_most)
    return next(nodes for nodes in range(fewest, gpus + 1) if gpus % nodes == 0)


def _cores_per_node(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    kind: NodeKind,
    nodes: int,
    gpus_per_node: int,
) -> int:
    usable = kind.usable_cores or kind.cores
    if request.gpus == 0:
        return math.ceil((request.cpus or 1) / nodes)
    if request.cpus_per_gpu is not None:
        return request.cpus_per_gpu * gpus_per_node
    if request.cpus is not None:
        return math.ceil(request.cpus / nodes)
    if partition.exclusive:
        return usable
    share = share_of(cluster, kind)
    if share is not None and share.cores is not None:
        return share.cores * gpus_per_node
    of_node = kind.gpu.count if kind.gpu else 1
    return max(1, usable * gpus_per_node // of_node)


def _memory(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    kind: NodeKind,
    gpus_per_node: int,
) -> float | None:
    if request.memory_gib is not None:
        return request.memory_gib
    if cluster.dialect.memory == "none":
        return None
    share = share_of(cluster, kind)
    if share is not None and share.automatic:
        return None
    if partition.exclusive:
        return kind.memory_gib
    if share is not None and share.memory_gib is not None:
        return share.memory_gib * gpus_per_node
    return None
