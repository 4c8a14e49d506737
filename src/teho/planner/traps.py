"""What the scheduler would take and the user would regret."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.cluster import Cluster, NodeKind, Partition
from teho.model.plan import Advice
from teho.model.request import Request
from teho.planner.shape import Shape, share_of

__all__ = ["advice_for"]

_ONE_PROCESS = "plain"


def advice_for(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> tuple[Advice, ...]:
    """Return the warnings for a request that fits."""
    return tuple(
        advice
        for check in (_launcher, _share, _exclusive, _unknown, _account, _disk)
        for advice in check(request, cluster, partition, kind, shape)
    )


def _launcher(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Advice]:
    del cluster, partition, kind
    if request.launcher == _ONE_PROCESS and (request.gpus > 1 or shape.nodes > 1):
        what = f"{request.gpus} GPUs" if shape.nodes == 1 else f"{shape.nodes} nodes"
        yield Advice(
            kind="one_process_for_many",
            sentence=f"{what}, and one process: unless the program starts more itself, the rest "
            "idles; `--launcher torchrun` or `srun` starts one for each GPU",
            source="CSC ml-multi.md: simply reserving more GPUs isn't enough",
        )


def _share(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Advice]:
    share = share_of(cluster, kind)
    if share is None or share.enforced or partition.exclusive or not request.gpus:
        return
    if share.cores and shape.cores_per_node > share.cores * shape.gpus_per_node:
        yield Advice(
            kind="cores_above_share",
            sentence=f"{shape.cores_per_node} cores are more than the share of "
            f"{shape.gpus_per_node} GPU{'s' if shape.gpus_per_node > 1 else ''} "
            f"({share.cores} each): others' GPUs stay unused, and the bill counts them",
            source=share.source,
        )
    memory = shape.memory_gib
    if share.memory_gib and memory and memory > share.memory_gib * shape.gpus_per_node:
        yield Advice(
            kind="memory_above_share",
            sentence=f"{memory:g} GiB are more than the share of {shape.gpus_per_node} "
            f"GPU{'s' if shape.gpus_per_node > 1 else ''} ({share.memory_gib:g} GiB each)",
            source=share.source,
        )


def _exclusive(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Advice]:
    del cluster
    whole = kind.gpu.count if kind.gpu else 0
    if partition.exclusive and request.gpus and shape.gpus_per_node < whole:
        yield Advice(
            kind="whole_nodes_billed",
            sentence=f"{partition.name} gives and bills whole nodes: {whole} GPUs each, "
            f"{shape.gpus_per_node} asked for",
            source=partition.source,
        )


def _unknown(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Advice]:
    del shape
    for name in partition.unknown:
        yield Advice(
            kind="limit_not_documented",
            sentence=f"{cluster.title} does not document {name.replace('_', ' ')} "
            f"of {partition.name or 'its jobs'}: the scheduler may still refuse",
            source=partition.source,
        )
    if request.gpu_memory_gib and kind.gpu and kind.gpu.memory_gib is None:
        yield Advice(
            kind="gpu_memory_not_documented",
            sentence=f"the memory of {kind.gpu.model} is not documented, "
            f"{request.gpu_memory_gib:g} GiB are needed",
            source=kind.source,
        )


def _account(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Advice]:
    del partition, kind, shape
    if cluster.account.required and request.account is None:
        yield Advice(
            kind="account_missing",
            sentence=f"{cluster.title} asks for an account: `--account {cluster.account.example}`",
            source=cluster.account.source,
        )


def _disk(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Advice]:
    del partition, kind, shape
    disk = cluster.local_disk
    if disk is None:
        return
    if request.local_disk_gib is not None and disk.in_memory:
        yield Advice(
            kind="local_disk_is_memory",
            sentence=f"${disk.variable} is memory here and counts as the job's own",
            source=disk.source,
        )
    words = " ".join(request.command)
    if disk.option and request.local_disk_gib is None and disk.variable in words:
        yield Advice(
            kind="local_disk_not_asked",
            sentence=f"the command uses ${disk.variable}, which is there only when disk is "
            "asked for: `--local-disk 100GiB`",
            source=disk.source,
        )
