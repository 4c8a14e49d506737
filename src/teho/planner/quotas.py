"""Which parallel environment and which quotas of Grid Engine's a job has. Pure.

Of each set of quotas the first rule that matches holds (sge_resource_quota(5)).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from teho.model.cluster import Cluster, NodeKind, ParallelEnvironment, Partition, Quota
from teho.model.member import Live
from teho.model.request import Request
from teho.planner.parallel_environments import environments_for, keeps_together, needs_environment
from teho.schedulers.registry import scheduler_of
from teho.units import parse_mib

__all__ = ["Holds", "holding", "least_memory_of_hosts", "project_of"]


class Holds(msgspec.Struct, frozen=True):
    """The environment and the quotas of a job."""

    needs_environment: bool = False
    environment: ParallelEnvironment | None = None
    on_one_node: bool = True
    """Whether its cores surely are."""
    rules: tuple[Quota, ...] = ()
    unsure: tuple[str, ...] = ()
    """Sets of which it is not known which rule holds."""

    def most(self, what: str) -> int | None:
        """Return the most of `cores`, `memory` or `gpu:TYPE` that the job may have. None: any."""
        return min((rule.limits[what] for rule in self.rules if what in rule.limits), default=None)

    def allows(self, cores: int, gpu_type: str, gpus: int) -> bool:
        """Return whether the quotas allow so many cores and GPUs."""
        for what, count in (("cores", cores), (f"gpu:{gpu_type}", gpus)):
            most = self.most(what)
            if most is not None and count > most:
                return False
        return True


_NONE = Holds()


def holding(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    kind: NodeKind,
    live: Live | None,
    cores: int,
    gpus: int,
) -> Holds:
    """Choose the environment of a job with so many cores and GPUs on its node.

    Of those that can give them, the first whose quotas allow them; if none does, the first.
    """
    if not scheduler_of(cluster.scheduler).has_slots:
        return _NONE
    choices: list[Holds] = []
    if not needs_environment(cluster, partition, cores):
        choices.append(Holds())
    else:
        for one in environments_for(partition, kind, live, cores):
            together = keeps_together(one, partition, kind, cores)
            choices.append(Holds(needs_environment=True, environment=one, on_one_node=together))
        choices = choices or [Holds(needs_environment=True)]
    found = [_held(request, cluster, partition, kind, live, one) for one in choices]
    gpu_type = kind.gpu.type if kind.gpu else ""
    return next((one for one in found if one.allows(cores, gpu_type, gpus)), found[0])


def _held(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    kind: NodeKind,
    live: Live | None,
    own: Holds,
) -> Holds:
    if not cluster.quotas:
        return own
    name, project = own.environment.name if own.environment else "", project_of(request, live)
    rules: list[Quota] = []
    unsure: list[str] = []
    done: set[str] = set()
    for rule in cluster.quotas:
        if (
            rule.name in done
            or partition.name not in rule.partitions
            or kind.name not in {*rule.kinds, *rule.kinds_in_part}
            or not _is_named(rule.environments, name)
            or (project is not None and not _is_named(rule.projects, project))
        ):
            continue
        is_sure = kind.name in rule.kinds and (project is not None or not rule.projects)
        is_user = _is_user(rule.users, live)
        if is_user is False:
            continue
        done.add(rule.name)
        if is_user and is_sure:
            rules.append(rule)
        else:
            unsure.append(rule.name)
    return msgspec.structs.replace(own, rules=tuple(rules), unsure=tuple(unsure))


def least_memory_of_hosts(cluster: Cluster, partition: Partition, cores: int) -> int | None:
    """Return what each host of a queue has in MiB, if a job must fit on all. None: it need not.

    Grid Engine 8.1.9 may never start a parallel job whose memory is counted for the whole job
    (`JOB`) if one of the hosts has less, though `qsub -w v` takes it.
    """
    is_parallel = needs_environment(cluster, partition, cores)
    if not is_parallel or cluster.dialect.memory != "node":
        return None
    amounts = [
        parse_mib(kind.memory)
        for kind in cluster.nodes
        if kind.name in partition.kinds and kind.memory is not None
    ]
    return min(amounts, default=None)


def project_of(request: Request, live: Live | None) -> str | None:
    """Return the project that is billed; empty: none. None: a default one is not known."""
    return request.account or (live.default_account if live else None)


def _is_named(words: Sequence[str], name: str) -> bool:
    """Return whether a list of projects or environments has a name; empty is a job without one."""
    if not words:
        return True
    wanted, unwanted = _parted(words)
    if name and unwanted & {"*", name}:
        return False
    return not wanted or (bool(name) and bool(wanted & {"*", name}))


def _is_user(words: Sequence[str], live: Live | None) -> bool | None:
    """Return whether a list of users has her. None: it is not known on which lists she is."""
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
