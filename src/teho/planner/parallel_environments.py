"""Which of Grid Engine's parallel environments gives a job its cores. Pure.

A core is a slot there. Clusters whose file names one option for cores have no environments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from teho.model.cluster import Cluster, NodeKind, ParallelEnvironment, Partition
from teho.model.member import Live
from teho.schedulers.registry import scheduler_of

__all__ = [
    "environments_for",
    "environments_of",
    "is_let_in",
    "keeps_together",
    "needs_environment",
]


def needs_environment(cluster: Cluster, partition: Partition, cores: int) -> bool:
    """Return whether a job with so many cores needs an environment of a partition's."""
    if not scheduler_of(cluster.scheduler).has_slots or cluster.dialect.cores:
        return False
    return cores > 1 or partition.only_parallel


def environments_for(
    partition: Partition, kind: NodeKind, live: Live | None, cores: int
) -> list[ParallelEnvironment]:
    """Return those that give so many cores on one node, first those that surely do."""
    able = [
        one
        for one in environments_of(partition, kind, live)
        if one.max_cores is None or cores <= one.max_cores
        if one.rule != "fixed" or cores == one.cores_per_node
        if one.rule != "spread" or cores == 1 or _is_alone(partition, kind)
    ]
    return sorted(able, key=lambda one: not keeps_together(one, partition, kind, cores))


def keeps_together(
    one: ParallelEnvironment, partition: Partition, kind: NodeKind, cores: int
) -> bool:
    """Return whether an environment surely gives so many cores on one node."""
    return one.rule in {"one_node", "fixed"} or cores == 1 or _is_alone(partition, kind)


def _is_alone(partition: Partition, kind: NodeKind) -> bool:
    """Return whether a partition has one node."""
    return partition.node_counts.get(kind.name, kind.count) == 1 and len(partition.kinds) == 1


def environments_of(
    partition: Partition, kind: NodeKind, live: Live | None
) -> Iterator[ParallelEnvironment]:
    """Yield those of a partition that the user may use on a kind of node."""
    for one in partition.parallel_environments:
        if one.kinds and kind.name not in one.kinds:
            continue
        if is_let_in(live, one.user_lists, one.denied_user_lists) is not False:
            yield one


def is_let_in(live: Live | None, allowed: Collection[str], denied: Collection[str]) -> bool | None:
    """Return whether user lists let the user in. None: it is not known on which she is."""
    if not allowed and not denied:
        return True
    if live is None or live.user_lists is None:
        return None
    own = {*live.user_lists}
    return (not allowed or bool(own & {*allowed})) and not own & {*denied}
