"""Find the limits of QOS and associations for a job on Slurm. Pure.

Slurm looks for each limit in the partition's QOS, the job's QOS, the user's association and the
account's association. It uses the first one that has the limit. If the job's QOS has the flag
OverPartQOS, it comes before the partition's QOS (resource_limits.html, Hierarchy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from teho.model.cluster import Cluster, Partition
from teho.model.member import Association, Live
from teho.model.request import Request
from teho.units import parse_duration

__all__ = ["Limit", "Limits", "account_of", "association_of", "limits_for", "qos_name"]

_ROOTS_QOS = "normal"
"""Default QOS of the root association in slurmdbd, unless a site has changed it."""


class Limit(msgspec.Struct, frozen=True):
    """A number, and the QOS or association that sets it."""

    most: int
    setter: str
    """Such as `QOS long`."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one job by trackable resource, in the units of `model.cluster.Qos`."""

    job: dict[str, Limit] = {}
    """Of the whole job: the smallest limit of a job, a user, and all jobs of a QOS or account."""
    node: dict[str, Limit] = {}
    least: dict[str, Limit] = {}
    time_s: float | None = None
    time_setter: str = ""
    partition_time_applies: bool = True
    unread_account: str = ""
    """An account whose limits the user may not read."""

    def job_most(self, what: str) -> int | None:
        """Return the maximum of a resource for the job. None: no limit."""
        return self.job[what].most if what in self.job else None

    def node_most(self, what: str) -> int | None:
        """Return the maximum of a resource per node. None: no limit."""
        return self.node[what].most if what in self.node else None


def limits_for(
    request: Request, cluster: Cluster, partition: Partition, live: Live | None
) -> Limits:
    """Return the limits of QOS and associations for a job in a partition."""
    if "limits" not in cluster.enforced and "safe" not in cluster.enforced:
        return Limits()
    own = association_of(request, partition, live)
    named = qos_name(request, own)
    job_qos = cluster.qos.get(named)
    names = [partition.qos, named]
    if job_qos and "OverPartQOS" in job_qos.flags:
        names.reverse()
    rules = [(f"QOS {name}", cluster.qos[name]) for name in names if name in cluster.qos]
    jobs = [(setter, qos.max_of_job) for setter, qos in rules]
    users = [(setter, qos.max_of_user) for setter, qos in rules]
    groups = [(setter, qos.max_of_all) for setter, qos in rules]
    nodes = [(setter, qos.max_of_node) for setter, qos in rules]
    times = [
        (setter, parse_duration(qos.max_time) if qos.max_time else None) for setter, qos in rules
    ]
    if own:
        account = f"account {own.account}"
        mine = f"your limits in {account}"
        jobs.append((mine, own.max_of_job))
        nodes.append((mine, own.max_of_node))
        groups += [(mine, own.max_of_user), (account, own.max_of_account or {})]
        times.append((mine, own.max_time_s))
    setter, time_s = next(((who, s) for who, s in times if s is not None), ("", None))
    return Limits(
        job=_smallest(_first(jobs), _first(users), _first(groups)),
        node=_first(nodes),
        least=_first((setter, qos.min_of_job) for setter, qos in rules),
        time_s=time_s,
        time_setter=setter,
        # Only the job's QOS lifts this limit. The partition's QOS does not (Slurm 22.05).
        partition_time_applies=job_qos is None or "PartitionTimeLimit" not in job_qos.flags,
        unread_account=own.account if own and own.max_of_account is None else "",
    )


def _first(rules: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, Limit]:
    """Return for each resource the first limit."""
    found: dict[str, Limit] = {}
    for setter, numbers in rules:
        for what, number in numbers.items():
            found.setdefault(what, Limit(number, setter))
    return found


def _smallest(*rules: Mapping[str, Limit]) -> dict[str, Limit]:
    """Return for each resource the smallest limit."""
    found: dict[str, Limit] = {}
    for limits in rules:
        for what, limit in limits.items():
            if what not in found or limit.most < found[what].most:
                found[what] = limit
    return found


def account_of(request: Request, live: Live) -> str:
    """Return the account of the job; empty: it has none."""
    return request.account or live.default_account


def association_of(request: Request, partition: Partition, live: Live | None) -> Association | None:
    """Return the user's association with the account in this partition. None: unknown."""
    if live is None or live.associations is None:
        return None
    account = account_of(request, live).lower()
    own = [one for one in live.associations if one.account.lower() == account]
    for name in (partition.name, ""):
        for one in own:
            if one.partition == name:
                return one
    return None


def qos_name(request: Request, own: Association | None) -> str:
    """Return the job's QOS: the requested one, the user's default or only one, or `normal`."""
    if request.qos:
        return request.qos
    if own is None:
        return ""
    only = own.qos[0] if len(own.qos) == 1 else ""
    return own.default_qos or only or (_ROOTS_QOS if _ROOTS_QOS in own.qos else "")
