"""Choose a job's parallel environment and find its quotas on Grid Engine. Pure.

A core is a slot there. A cluster whose file names one option for cores has no environments. In each
set of quotas, the first matching rule applies (sge_resource_quota(5)).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from teho.model.cluster import ParallelEnvironment, Quota
from teho.model.member import Live
from teho.model.request import Request
from teho.planner.place import Place, memory_mib
from teho.units import least

__all__ = [
    "SlotRules",
    "environments_for",
    "environments_of",
    "is_let_in",
    "least_memory_of_hosts",
    "needs_environment",
    "project_of",
    "slot_rules",
]


class SlotRules(msgspec.Struct, frozen=True):
    """The parallel environment and the quotas of a job."""

    needs_environment: bool = False
    environment: ParallelEnvironment | None = None
    on_one_node: bool = True
    """Whether all its cores are certainly on one node."""
    rules: tuple[Quota, ...] = ()
    unsure: tuple[str, ...] = ()
    """Names of the quota sets whose matching rule is unknown."""

    def most(self, what: str) -> int | None:
        """Return the maximum of `cores`, `memory` or `gpu:TYPE` for the job. None: no maximum."""
        return least(*(rule.limits.get(what) for rule in self.rules))

    def allows(self, cores: int, gpu_type: str, gpus: int) -> bool:
        """Return whether the quotas allow these numbers of cores and GPUs."""
        limits = ((self.most("cores"), cores), (self.most(f"gpu:{gpu_type}"), gpus))
        return all(most is None or count <= most for most, count in limits)


def slot_rules(place: Place, cores: int, gpus: int) -> SlotRules:
    """Choose the parallel environment for this number of cores and GPUs on one node.

    The first environment whose quotas allow the job; if no quotas allow it, the first one.
    """
    if not place.scheduler.has_slots:
        return SlotRules()
    choices = [SlotRules()]
    if needs_environment(place, cores):
        choices = [
            SlotRules(True, environment, keeps_together(environment, place, cores))
            for environment in environments_for(place, cores)
        ] or [SlotRules(True)]
    found = [_with_quotas(choice, place) for choice in choices]
    gpu_type = place.kind.gpu.type if place.kind.gpu else ""
    return next((one for one in found if one.allows(cores, gpu_type, gpus)), found[0])


def _with_quotas(choice: SlotRules, place: Place) -> SlotRules:
    environment = choice.environment.name if choice.environment else ""
    partition, kind, live = place.partition.name, place.kind.name, place.live
    project = project_of(place.request, live)
    rules: list[Quota] = []
    unsure: list[str] = []
    done: set[str] = set()
    for rule in place.cluster.quotas:
        if (
            rule.name in done
            or partition not in rule.partitions
            or kind not in {*rule.kinds, *rule.kinds_in_part}
            or not _is_named(rule.environments, environment)
            or (project is not None and not _is_named(rule.projects, project))
        ):
            continue
        is_sure = kind in rule.kinds and (project is not None or not rule.projects)
        is_user = _is_user(rule.users, live)
        if is_user is False:
            continue
        done.add(rule.name)
        if is_user and is_sure:
            rules.append(rule)
        else:
            unsure.append(rule.name)
    return msgspec.structs.replace(choice, rules=tuple(rules), unsure=tuple(unsure))


def least_memory_of_hosts(place: Place, cores: int) -> int | None:
    """Return the smallest memory of a queue's hosts in MiB, if the job must fit on all of them.

    None: the job need not fit on all hosts. If the memory of a parallel job is counted for the
    whole job (`JOB`) and one host has less, Grid Engine 8.1.9 may never start the job, although
    `qsub -w v` accepts it.
    """
    cluster, kinds = place.cluster, place.partition.kinds
    if not needs_environment(place, cores) or cluster.dialect.memory != "node":
        return None
    return least(*(memory_mib(kind.memory) for kind in cluster.nodes if kind.name in kinds))


def project_of(request: Request, live: Live | None) -> str | None:
    """Return the project to bill; empty: no project. None: the default project is unknown."""
    return request.account or (live.default_account if live else None)


def _is_named(words: Sequence[str], name: str) -> bool:
    """Return whether a list of projects or environments matches; the name may be empty."""
    if not words:
        return True
    wanted, unwanted = _split(words)
    if name and unwanted & {"*", name}:
        return False
    return not wanted or (bool(name) and bool(wanted & {"*", name}))


def _is_user(words: Sequence[str], live: Live | None) -> bool | None:
    """Return whether a list matches the user. None: the user's lists are unknown."""
    if not {*words} - {"*"}:
        return True
    if live is None or not live.user or live.user_lists is None:
        return None
    names = {live.user, "*", *(f"@{name}" for name in live.user_lists)}
    wanted, unwanted = _split(words)
    return (not wanted or bool(names & wanted)) and not names & unwanted


def _split(words: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the names in a list, and the names that `!` excludes."""
    wanted = {word for word in words if not word.startswith("!")}
    return wanted, {word[1:] for word in words if word.startswith("!")}


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
