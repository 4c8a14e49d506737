"""Which of Grid Engine's parallel environments gives a job its cores. Pure.

A core is a slot there. Clusters whose file names one option for cores have no environments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from teho.model.cluster import Cluster, NodeKind, ParallelEnvironment, Partition
from teho.model.member import Live

__all__ = ["environment_for", "environments_of", "is_on_lists", "needs_environment"]


def needs_environment(cluster: Cluster, cores: int) -> bool:
    """Tell whether a job with so many cores needs an environment."""
    return cluster.scheduler == "grid_engine" and not cluster.dialect.cores and cores > 1


def environment_for(
    partition: Partition, kind: NodeKind, live: Live | None, cores: int
) -> ParallelEnvironment | None:
    """Return the first that surely gives so many cores on one node; None: none does."""
    for one in environments_of(partition, live):
        is_enough = one.max_cores is None or cores <= one.max_cores
        if is_enough and _keeps_together(one, partition, kind, cores):
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


def _keeps_together(
    one: ParallelEnvironment, partition: Partition, kind: NodeKind, cores: int
) -> bool:
    if one.rule in {"one_node", "fixed"}:
        return one.rule == "one_node" or cores == one.cores_per_node
    # There is no other node.
    count = partition.node_counts.get(kind.name, kind.count)
    return count == 1 and len(partition.kinds) == 1
