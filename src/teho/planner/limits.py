"""Every written limit that a request can break, each with its source."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.model.cluster import Cluster, NodeKind, Partition
from teho.model.plan import Refusal
from teho.model.request import Request
from teho.planner.shape import Shape, share_of
from teho.units import format_duration, parse_duration

__all__ = ["refusals_of"]


def refusals_of(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> tuple[Refusal, ...]:
    """Return the limits that a request breaks on one partition; empty where it fits."""
    return tuple(
        refusal
        for check in (_gpus, _nodes, _time, _cores, _memory, _disk)
        for refusal in check(request, cluster, partition, kind, shape)
    )


def _gpus(
    request: Request, _: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Refusal]:
    gpu, where, source = kind.gpu, _where(partition), partition.source
    if gpu is None or request.gpus == 0:
        return
    wanted = request.gpu_memory_gib
    if wanted is not None and gpu.memory_gib is not None and gpu.memory_gib < wanted:
        yield Refusal(
            kind="gpu_memory",
            sentence=f"{gpu.model} has {gpu.memory_gib:g} GiB, {wanted:g} GiB are needed",
            source=kind.source,
        )
    if request.gpus % shape.nodes:
        yield Refusal(
            kind="uneven_gpus",
            sentence=f"{request.gpus} GPUs do not lie evenly on {shape.nodes} nodes",
            source="Slurm: --gres and --gpus-per-node count for each node",
            instead=f"{shape.gpus_per_node * shape.nodes} GPUs",
        )
    most = min(gpu.count, partition.max_gpus_per_node or gpu.count)
    if shape.gpus_per_node > most:
        yield Refusal(
            kind="too_many_gpus_per_node",
            sentence=f"{shape.gpus_per_node} GPUs on a node, {where} has {most}",
            source=source if partition.max_gpus_per_node else kind.source,
            instead=f"{math.ceil(request.gpus / most)} nodes",
        )
    least = partition.min_gpus_per_node
    if least is not None and shape.gpus_per_node < least:
        yield Refusal(
            kind="too_few_gpus_per_node",
            sentence=f"{shape.gpus_per_node} GPUs on a node, {where} takes {least} or more",
            source=source,
        )
    if partition.max_gpus is not None and request.gpus > partition.max_gpus:
        yield Refusal(
            kind="too_many_gpus",
            sentence=f"{request.gpus} GPUs, {where} takes at most {partition.max_gpus} a job",
            source=source,
        )
    if partition.min_gpus is not None and request.gpus < partition.min_gpus:
        yield Refusal(
            kind="too_few_gpus",
            sentence=f"{request.gpus} GPUs, {where} takes {partition.min_gpus} or more",
            source=source,
        )
    yield from _gpu_counts(request.gpus, partition)


def _gpu_counts(gpus: int, partition: Partition) -> Iterator[Refusal]:
    counts, multiple = partition.gpu_counts, partition.gpu_multiple
    if not counts and multiple is None:
        return
    if gpus in counts or (multiple is not None and gpus % multiple == 0):
        return
    allowed = [str(count) for count in counts]
    allowed += [f"a multiple of {multiple}"] if multiple is not None else []
    yield Refusal(
        kind="gpu_count",
        sentence=f"{gpus} GPUs, {_where(partition)} takes {' or '.join(allowed)}",
        source=partition.source,
        instead=f"{math.ceil(gpus / multiple) * multiple} GPUs" if multiple else "",
    )


def _nodes(
    request: Request, _: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Refusal]:
    del request
    limits = [(partition.max_nodes, partition.source), (kind.count, kind.source)]
    for most, source in limits:
        if most is not None and shape.nodes > most:
            yield Refusal(
                kind="too_many_nodes",
                sentence=f"{shape.nodes} nodes, {_where(partition)} has at most {most}",
                source=source,
            )
            return
    if shape.nodes < partition.min_nodes:
        yield Refusal(
            kind="too_few_nodes",
            sentence=f"{shape.nodes} nodes, {_where(partition)} takes "
            f"{partition.min_nodes} or more",
            source=partition.source,
        )


def _time(
    request: Request, _: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Refusal]:
    del kind, shape
    asked = format_duration(request.time_s)
    if partition.max_time and request.time_s > parse_duration(partition.max_time):
        yield Refusal(
            kind="too_long",
            sentence=f"{asked}, {_where(partition)} allows "
            f"{format_duration(parse_duration(partition.max_time))}",
            source=partition.source,
        )
    if partition.min_time and request.time_s < parse_duration(partition.min_time):
        yield Refusal(
            kind="too_short",
            sentence=f"{asked}, {_where(partition)} asks for "
            f"{format_duration(parse_duration(partition.min_time))} or more",
            source=partition.source,
            instead=f"--time {partition.min_time}",
        )


def _cores(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Refusal]:
    usable = kind.usable_cores or kind.cores
    cores = shape.cores_per_node
    if cores > usable:
        kept = (
            f" ({kind.cores} in all, the rest is kept for the system)"
            if usable < kind.cores
            else ""
        )
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"{cores} cores on a node, jobs can have {usable}{kept}",
            source=kind.source,
            instead=f"{usable // max(1, shape.tasks_per_node)} cores a task",
        )
    elif partition.max_cores_per_node is not None and cores > partition.max_cores_per_node:
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"{cores} cores on a node, {_where(partition)} allows "
            f"{partition.max_cores_per_node}",
            source=partition.source,
        )
    if partition.max_cores is not None and cores * shape.nodes > partition.max_cores:
        yield Refusal(
            kind="too_many_cores",
            sentence=f"{cores * shape.nodes} cores, {_where(partition)} allows "
            f"{partition.max_cores} a job",
            source=partition.source,
        )
    share = share_of(cluster, kind)
    if share and share.enforced and share.cores and request.gpus:
        most = share.cores * shape.gpus_per_node
        if cores > most:
            yield Refusal(
                kind="cores_above_share",
                sentence=f"{cores} cores with {shape.gpus_per_node} GPUs, {cluster.title} gives "
                f"at most {share.cores} with each",
                source=share.source,
            )


def _memory(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Refusal]:
    del partition
    memory = shape.memory_gib
    if memory is not None and kind.memory_gib is not None and memory > kind.memory_gib:
        yield Refusal(
            kind="too_much_memory",
            sentence=f"{memory:g} GiB on a node, jobs can have {kind.memory_gib:g} GiB",
            source=kind.source,
        )
    share = share_of(cluster, kind)
    if request.memory_gib is not None and share is not None and share.automatic:
        yield Refusal(
            kind="memory_is_automatic",
            sentence=f"{cluster.title} gives memory with the GPUs, a request must not name it",
            source=share.source,
            instead="leave --mem out",
        )
    elif share is not None and share.enforced and share.memory_gib and memory and request.gpus:
        most = share.memory_gib * shape.gpus_per_node
        if memory > most:
            yield Refusal(
                kind="memory_above_share",
                sentence=f"{memory:g} GiB with {shape.gpus_per_node} GPUs, {cluster.title} gives "
                f"at most {share.memory_gib:g} GiB with each",
                source=share.source,
            )


def _disk(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Iterator[Refusal]:
    del partition, shape
    wanted = request.local_disk_gib
    if wanted is None:
        return
    if cluster.local_disk is None or kind.local_disk_gib == 0:
        yield Refusal(
            kind="no_local_disk",
            sentence=f"{cluster.title}'s nodes of kind {kind.name} have no disk of their own",
            source=kind.source,
        )
    elif kind.local_disk_gib is not None and wanted > kind.local_disk_gib:
        yield Refusal(
            kind="too_much_local_disk",
            sentence=f"{wanted:g} GiB of local disk, a node has {kind.local_disk_gib:g} GiB",
            source=kind.source,
        )


def _where(partition: Partition) -> str:
    return partition.name or "the cluster"
