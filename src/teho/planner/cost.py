"""What a laid-out request is billed."""

from __future__ import annotations

from msgspec.structs import replace

from teho.clusters.billing import BilledUse, bill
from teho.model.cluster import Cluster
from teho.model.plan import Cost, Option
from teho.planner.allocated import given_to
from teho.planner.shape import Case, case_of

__all__ = ["cost_of", "cost_of_use"]


def cost_of_use(
    option: Option, cluster: Cluster, elapsed_s: float, memory_mib: int | None = None
) -> Cost | None:
    """Return the bill of a planned job that ran for some time, however long was asked for.

    None if the site's formula is not documented, where the cluster no longer has the
    partition or the nodes that were planned with, or where memory is billed and nobody
    knows how much the job had.

    Args:
        option: what was planned.
        cluster: the one it ran on.
        elapsed_s: how long it ran.
        memory_mib: what the whole job got, where the plan left that to the site.
    """
    for partition in cluster.partitions:
        for kind in cluster.nodes:
            planned = (partition.name, partition.title) == (option.partition, option.label)
            if planned and kind.name == option.node_kind:
                case = case_of(option.request, cluster, partition, kind, nodes=option.nodes)
                if memory_mib is not None and case.memory_is_left_to_the_site:
                    shape = replace(case.shape, memory_mib=memory_mib // case.shape.nodes)
                    case = replace(case, shape=shape)
                if case.billed_memory_is_unknown:
                    return None
                return cost_of(case, elapsed_s)
    return None


def cost_of(case: Case, elapsed_s: float | None = None) -> Cost | None:
    """Return the bill of a job that runs for some time; None: for all the time it asks for.

    None if the site's formula is not documented, or bills what depends on the node that the
    job comes to; an amount of 0 without a unit where the site charges nothing.
    """
    partition, kind, shape = case.partition, case.kind, case.shape
    if not partition.billing:
        if "billing" in partition.unknown:
            return None
        return Cost(amount=0.0, unit="", sum="", source=partition.source)
    given = given_to(case)
    billing = case.cluster.billing[partition.billing]
    needed = {term.of for term in (*billing.sum, *billing.largest)}
    if (
        ("cores" in needed and given.cores is None)
        or ("cpus" in needed and given.cpus is None)
        or (needed & {"gpus", "weighted_gpus"} and given.gpus is None)
    ):
        return None
    nodes = shape.nodes
    return bill(
        billing,
        BilledUse(
            nodes=nodes,
            gpus=tuple((gpu_type, count * nodes) for gpu_type, count in given.gpus or ()),
            gpu_weight=kind.gpu.weight if kind.gpu else 1.0,
            cores=(given.cores or 0) * nodes,
            cpus=(given.cpus or 0) * nodes,
            memory_gib=(given.memory_mib or 0) / 1024 * nodes,
            local_disk_gib=(case.request.local_disk_gib or 0.0) * nodes,
            hours=(shape.time_s if elapsed_s is None else elapsed_s) / 3600,
        ),
    )
