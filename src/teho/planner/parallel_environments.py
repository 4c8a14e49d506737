"""Find the parallel environments of Grid Engine that give a job its cores. Pure.

A core is a slot there. A cluster whose file names one option for cores has no environments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from teho.model.cluster import ParallelEnvironment
from teho.model.member import Live
from teho.planner.place import Place

__all__ = [
    "environments_for",
    "environments_of",
    "is_let_in",
    "keeps_together",
    "needs_environment",
]


def needs_environment(place: Place, cores: int) -> bool:
    """Return whether a job with this number of cores needs a parallel environment."""
    if not place.scheduler.has_slots or place.cluster.dialect.cores:
        return False
    return cores > 1 or place.partition.only_parallel


def environments_for(place: Place, cores: int) -> list[ParallelEnvironment]:
    """Return the environments that can give the cores on one node, the certain ones first."""
    able = [
        one
        for one in environments_of(place)
        if one.max_cores is None or cores <= one.max_cores
        if one.rule != "fixed" or cores == one.cores_per_node
        if one.rule != "spread" or cores == 1 or _has_one_node(place)
    ]
    return sorted(able, key=lambda one: not keeps_together(one, place, cores))


def keeps_together(one: ParallelEnvironment, place: Place, cores: int) -> bool:
    """Return whether an environment certainly gives the cores on one node."""
    return one.rule in {"one_node", "fixed"} or cores == 1 or _has_one_node(place)


def _has_one_node(place: Place) -> bool:
    return place.node_count == 1 and len(place.partition.kinds) == 1


def environments_of(place: Place) -> Iterator[ParallelEnvironment]:
    """Yield the environments of a partition that the user may use on this kind of node."""
    for one in place.partition.parallel_environments:
        if one.kinds and place.kind.name not in one.kinds:
            continue
        if is_let_in(place.live, one.user_lists, one.denied_user_lists) is not False:
            yield one


def is_let_in(live: Live | None, allowed: Collection[str], denied: Collection[str]) -> bool | None:
    """Return whether user lists admit the user. None: the user's lists are unknown."""
    if not allowed and not denied:
        return True
    if live is None or live.user_lists is None:
        return None
    lists = {*live.user_lists}
    return (not allowed or bool(lists & {*allowed})) and not lists & {*denied}
