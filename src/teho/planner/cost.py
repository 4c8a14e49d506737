"""Compute the bill of a laid-out request."""

from __future__ import annotations

from msgspec.structs import replace

from teho.clusters.billing import BilledUse, bill
from teho.model.cluster import Cluster
from teho.model.plan import Cost, Option
from teho.planner.allocated import given_to
from teho.planner.place import Case, Place
from teho.planner.shape import lay_out

__all__ = ["cost_of", "cost_of_use"]


def cost_of_use(
    option: Option, cluster: Cluster, elapsed_s: float, memory_mib: int | None = None
) -> Cost | None:
    """Return the bill of a planned job for its actual run time, not its requested time.

    None if the site's formula is not documented, if the cluster no longer has the planned
    partition or nodes, or if memory is billed and the job's amount is unknown.

    Args:
        option: the plan of the job.
        cluster: the cluster on which it ran.
        elapsed_s: its run time.
        memory_mib: memory of the whole job, if the plan left it to the site.
    """
    for partition in cluster.partitions:
        # Partitions of different nodes may have the same name.
        if (partition.name, partition.title) != (option.partition, option.label):
            continue
        for kind in cluster.nodes:
            if kind.name == option.node_kind and kind.name in partition.kinds:
                place = Place(
                    request=option.request, cluster=cluster, partition=partition, kind=kind
                )
                case = lay_out(place, option.nodes)
                if memory_mib is not None and case.memory_is_left_to_the_site:
                    shape = replace(case.shape, memory_mib=memory_mib // case.shape.nodes)
                    case = replace(case, shape=shape)
                if case.billed_memory_is_unknown:
                    return None
                return cost_of(case, elapsed_s)
    return None


def cost_of(case: Case, elapsed_s: float | None = None) -> Cost | None:
    """Return the bill of a job that runs for `elapsed_s`; None: for its requested time.

    None if the site's formula is not documented, or if the bill depends on the node that the
    scheduler chooses. If the site charges nothing, the amount is 0 without a unit.
    """
    partition, kind, shape = case.partition, case.kind, case.shape
    if not partition.billing:
        if "billing" in partition.unknown:
            return None
        return Cost(amount=0.0, unit="", sum="", source=partition.source)
    given = given_to(case)
    billing = case.cluster.billing[partition.billing]
    needed = {term.quantity for term in (*billing.sum, *billing.largest)}
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
