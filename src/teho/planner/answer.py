"""A request held against the catalogue: what fits, cheapest first, and why the rest does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from teho.clusters.billing import Use, bill
from teho.model.cluster import Cluster, NodeKind, Partition
from teho.model.plan import Answer, Cost, Option, Refusal, Unfit
from teho.model.request import Request
from teho.planner.limits import refusals_of
from teho.planner.shape import Shape, shape_of
from teho.planner.traps import advice_for

__all__ = ["answer"]


def answer(
    request: Request, clusters: Iterable[Cluster], *, even_if_retired: bool = False
) -> Answer:
    """Return every option that fits and, for everything else, the limits that it breaks.

    Options of one cluster come cheapest first. Clusters bill in units that do not
    compare, so they are ordered by the GPU that is least above the need.

    Args:
        request: what the program needs.
        clusters: the clusters to consider.
        even_if_retired: plan for retired clusters too, for study.
    """
    options: list[Option] = []
    unfit: list[Unfit] = []
    for cluster in clusters:
        if cluster.status == "retired" and not even_if_retired:
            unfit.append(_retired(cluster))
            continue
        fitting, failing = _of_cluster(request, cluster)
        options += fitting
        unfit += failing
    return Answer(options=tuple(sorted(options, key=_order)), unfit=tuple(unfit))


def _order(option: Option) -> tuple[float, str, float, bool, str]:
    memory = option.gpu_memory_gib or 0.0
    cost = option.cost.amount if option.cost else 0.0
    return (memory, option.cluster, cost, "test" in option.partition, option.partition)


def _retired(cluster: Cluster) -> Unfit:
    when = f" on {cluster.retired_on.isoformat()}" if cluster.retired_on else ""
    refusal = Refusal(
        kind="retired",
        sentence=f"{cluster.title} was retired{when}",
        source=f"catalogue, verified on {cluster.verified_on.isoformat()}",
        instead=f"--cluster {cluster.successor}" if cluster.successor else "",
    )
    return Unfit(cluster=cluster.name, partition="", refusals=(refusal,))


def _of_cluster(request: Request, cluster: Cluster) -> tuple[list[Option], list[Unfit]]:
    options: list[Option] = []
    unfit: list[Unfit] = []
    named = request.partition
    if named is not None and cluster.dialect.partition == "never":
        refusal = Refusal(
            kind="partition_named",
            sentence=f"partition {named!r} named, {cluster.title} chooses it itself",
            source=cluster.dialect.source,
            instead="leave --partition out",
        )
        return [], [Unfit(cluster=cluster.name, partition=named, refusals=(refusal,))]
    for partition in cluster.partitions:
        if named is not None and partition.name != named:
            continue
        kinds = list(_kinds(request, cluster, partition))
        refused: list[Refusal] = []
        for kind in kinds:
            shape = shape_of(request, cluster, partition, kind)
            refusals = (
                *_purpose(partition),
                *refusals_of(request, cluster, partition, kind, shape),
            )
            if refusals:
                refused += refusals
            else:
                options.append(_option(request, cluster, partition, kind, shape))
        if not kinds:
            refused.append(_no_such_nodes(request, cluster, partition))
        if refused and not any(option.partition == partition.name for option in options):
            unfit.append(
                Unfit(
                    cluster=cluster.name,
                    partition=partition.name,
                    refusals=tuple(dict.fromkeys(refused)),
                )
            )
    if named is not None and all(partition.name != named for partition in cluster.partitions):
        names = ", ".join(partition.name for partition in cluster.partitions if partition.name)
        refusal = Refusal(
            kind="no_such_partition",
            sentence=f"no partition {named!r}, {cluster.title} has {names}",
            source=cluster.dialect.source,
        )
        unfit.append(Unfit(cluster=cluster.name, partition=named, refusals=(refusal,)))
    return options, unfit


def _purpose(partition: Partition) -> Iterator[Refusal]:
    if partition.purpose == "restricted":
        yield Refusal(
            kind="restricted",
            sentence=f"{partition.name} is open by invitation alone",
            source=partition.source,
        )


def _kinds(request: Request, cluster: Cluster, partition: Partition) -> Iterator[NodeKind]:
    """Yield the node kinds of a partition that have what is asked for: such GPUs, or none."""
    for kind in cluster.nodes:
        if kind.name not in partition.kinds:
            continue
        gpu, wanted = kind.gpu, request.gpu_type
        if request.gpus == 0 or gpu is None:
            fits = request.gpus == 0 and gpu is None
        elif wanted is None:
            fits = not gpu.part_of  # slices are for those who ask for them by name
        else:
            fits = _is_type(wanted, gpu.type, gpu.model)
        if fits:
            yield kind


def _is_type(wanted: str, *names: str) -> bool:
    return any(wanted.lower() == name.lower() for name in names)


def _no_such_nodes(request: Request, cluster: Cluster, partition: Partition) -> Refusal:
    kinds = [kind for kind in cluster.nodes if kind.name in partition.kinds]
    types = sorted({kind.gpu.type for kind in kinds if kind.gpu})
    have = ", ".join(types) if types else "no GPUs"
    if request.gpus == 0:
        sentence = f"no GPU is asked for, {partition.name or cluster.title} is for GPU jobs"
    else:
        what = f"GPUs of type {request.gpu_type}" if request.gpu_type else "GPUs"
        sentence = f"{what} are asked for, {partition.name or cluster.title} has {have}"
    return Refusal(kind="no_such_nodes", sentence=sentence, source=partition.source)


def _option(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape
) -> Option:
    return Option(
        cluster=cluster.name,
        scheduler=cluster.scheduler,
        partition=partition.name,
        node_kind=kind.name,
        nodes=shape.nodes,
        gpus_per_node=shape.gpus_per_node,
        gpu_type=kind.gpu.type if kind.gpu else "",
        gpu_memory_gib=kind.gpu.memory_gib if kind.gpu else None,
        tasks_per_node=shape.tasks_per_node,
        cpus_per_task=shape.cpus_per_task,
        memory_gib=shape.memory_gib,
        local_disk_gib=request.local_disk_gib,
        time_s=request.time_s,
        account=request.account or "",
        cost=_cost(cluster, partition, kind, shape, request),
        advice=advice_for(request, cluster, partition, kind, shape),
        request=request,
    )


def _cost(
    cluster: Cluster, partition: Partition, kind: NodeKind, shape: Shape, request: Request
) -> Cost | None:
    if not partition.billing:
        return None
    whole = partition.exclusive
    gpus = kind.gpu.count if whole and kind.gpu else shape.gpus_per_node
    cores = (kind.usable_cores or kind.cores) if whole else shape.cores_per_node
    memory = kind.memory_gib if whole else shape.memory_gib
    return bill(
        cluster.billing[partition.billing],
        Use(
            nodes=shape.nodes,
            gpus=gpus * shape.nodes,
            gpu_weight=kind.gpu.weight if kind.gpu else 1.0,
            cores=cores * shape.nodes,
            memory_gib=(memory or 0.0) * shape.nodes,
            local_disk_gib=(request.local_disk_gib or 0.0) * shape.nodes,
            hours=request.time_s / 3600,
        ),
    )
