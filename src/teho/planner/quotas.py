"""Which of Grid Engine's resource quotas hold for a job (sge_resource_quota(5)). Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from teho.model.cluster import Cluster, NodeKind, Partition, Quota
from teho.model.member import Live
from teho.model.request import Request
from teho.planner.parallel_environments import environment_for, needs_environment

__all__ = ["Holds", "holding", "project_of"]


class Holds(msgspec.Struct, frozen=True):
    """The quotas of a job."""

    rules: tuple[Quota, ...] = ()
    unsure: tuple[str, ...] = ()
    """Sets of which it is not known which rule holds."""

    def most(self, what: str, nodes: int) -> int | None:
        """Return the most of `cores`, `memory` or `gpu:TYPE` on each node. None: no limit."""
        own = [
            rule.limits[what] // (1 if rule.per_node else nodes)
            for rule in self.rules
            if what in rule.limits
        ]
        return min(own, default=None)


_NONE = Holds()


def holding(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    kind: NodeKind,
    live: Live | None,
    cores: int,
) -> Holds:
    """Return the first rule of each set that is about a job with so many cores on its node."""
    if not cluster.quotas:
        return _NONE
    environment = (
        environment_for(partition, kind, live, cores)
        if needs_environment(cluster, partition, cores)
        else None
    )
    name, project = environment.name if environment else "", project_of(request, live)
    rules: list[Quota] = []
    unsure: list[str] = []
    done: set[str] = set()
    for rule in cluster.quotas:
        if (
            rule.name in done
            or partition.name not in rule.partitions
            or kind.name not in {*rule.kinds, *rule.kinds_in_part}
            or not _is_named(rule.environments, name)
            or not _is_named(rule.projects, project)
        ):
            continue
        is_user = _is_user(rule.users, live)
        if is_user is False:
            continue
        done.add(rule.name)
        if is_user and kind.name in rule.kinds:
            rules.append(rule)
        else:
            unsure.append(rule.name)
    return Holds(tuple(rules), tuple(unsure))


def project_of(request: Request, live: Live | None) -> str:
    """Return the project that pays; empty: none."""
    return request.account or (live.default_account if live else "")


def _is_named(words: Sequence[str], name: str) -> bool:
    """Tell whether a list of projects or environments has a name; empty is a job without one."""
    if not words:
        return True
    wanted, unwanted = _parted(words)
    if name and unwanted & {"*", name}:
        return False
    return not wanted or (bool(name) and bool(wanted & {"*", name}))


def _is_user(words: Sequence[str], live: Live | None) -> bool | None:
    """Tell whether a list of users has her. None: it is not known on which lists she is."""
    if not {*words} - {"*"}:
        return True
    if live is None or not live.user or live.user_lists is None:
        return None
    own = {live.user, "*", *(f"@{name}" for name in live.user_lists)}
    wanted, unwanted = _parted(words)
    return (not wanted or bool(own & wanted)) and not own & unwanted


def _parted(words: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the names of a list, and those that `!` takes out."""
    wanted = {word for word in words if not word.startswith("!")}
    return wanted, {word[1:] for word in words if word.startswith("!")}
