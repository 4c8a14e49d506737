"""Which of Grid Engine's parallel environments gives a job its cores. Pure.

A core is a slot there. Clusters whose file names one option for cores have no environments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from teho.model.cluster import Cluster, NodeKind, ParallelEnvironment, Partition
from teho.model.member import Live

__all__ = ["environment_for", "environments_of", "is_on_lists", "needs_environment"]


def needs_environment(cluster: Cluster, cores: int, nodes: int) -> bool:
    """Tell whether a job with so many cores on each of so many nodes needs an environment."""
    return cluster.scheduler == "grid_engine" and not cluster.dialect.cores and cores * nodes > 1


def environment_for(
    partition: Partition, kind: NodeKind, live: Live | None, cores: int, nodes: int
) -> ParallelEnvironment | None:
    """Return the first that surely puts so many cores on each of so many nodes; None: none does."""
    for one in environments_of(partition, live):
        is_enough = one.max_cores is None or cores * nodes <= one.max_cores
        if is_enough and _is_sure(one, partition, kind, cores, nodes):
            return one
    return None


def environments_of(partition: Partition, live: Live | None) -> Iterator[ParallelEnvironment]:
    """Yield those of a partition that the user may use."""
    for one in partition.parallel_environments:
        if is_on_lists(live, one.user_lists, one.denied_user_lists) is not False:
            yield one


def is_on_lists(
    live: Live | None, allowed: Collection[str], denied: Collection[str]
) -> bool | None:
    """Tell whether user lists let the user in. None: it is not known on which she is."""
    if not allowed and not denied:
        return True
    if live is None or live.user_lists is None:
        return None
    own = {*live.user_lists}
    return (not allowed or bool(own & {*allowed})) and not own & {*denied}


def _is_sure(
    one: ParallelEnvironment, partition: Partition, kind: NodeKind, cores: int, nodes: int
) -> bool:
    if one.rule == "one_node":
        return nodes == 1
    if one.rule == "fixed":
        return cores == one.cores_per_node
    if len(partition.kinds) > 1:
        return False
    # There is no other node, or those that are taken are full.
    alone = nodes == 1 and partition.node_counts.get(kind.name, kind.count) == 1
    return alone or cores == kind.cores_for_jobs
