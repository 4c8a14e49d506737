"""Whom Slurm lets use a partition, and the limits of QOS and associations that then hold. Pure.

Slurm looks for each limit in the partition's QOS, the job's QOS, the user's association and its
account's, in this order, and takes the first that has it; a job's QOS with the flag OverPartQOS
comes before the partition's (resource_limits.html, Hierarchy).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from teho.model.cluster import Cluster, NodeKind, Partition, Qos
from teho.model.member import Association, Live
from teho.model.plan import Refusal
from teho.model.request import Request
from teho.units import parse_duration

__all__ = ["Limit", "Limits", "access_refusals", "in_service", "limits_for", "unknown_of"]

_ROOTS_QOS = "normal"
"""The default of the root association, unless a site has changed it (slurmdbd's own)."""
_STATES = {
    "DOWN": "jobs wait there, and none begins",
    "DRAIN": "it finishes its jobs and takes no new ones",
    "INACTIVE": "it takes no jobs",
}


class Limit(msgspec.Struct, frozen=True):
    """A number, and who set it."""

    most: int
    setter: str
    """Such as `QOS long`."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one job may have, by trackable resource in the units of `model.cluster.Qos`."""

    job: dict[str, Limit] = {}
    """Of the whole job: the least of what a job, a user and all of a QOS or account may have."""
    node: dict[str, Limit] = {}
    least: dict[str, Limit] = {}
    time_s: float | None = None
    time_setter: str = ""
    partition_time_holds: bool = True
    unread_account: str = ""
    """An account whose own limits its user may not read."""

    def job_most(self, what: str) -> int | None:
        """Return the most of a resource that a job may have. None: no limit."""
        return self.job[what].most if what in self.job else None

    def node_most(self, what: str) -> int | None:
        """Return the most of a resource that a job may have on a node. None: no limit."""
        return self.node[what].most if what in self.node else None


_NO_LIMITS = Limits()


def limits_for(
    request: Request, cluster: Cluster, partition: Partition, live: Live | None
) -> Limits:
    """Return the limits of QOS and associations for a job in a partition."""
    if "limits" not in cluster.enforced and "safe" not in cluster.enforced:
        return _NO_LIMITS
    own = _association(request, partition, live)
    job_qos = cluster.qos.get(_qos_name(request, own))
    bound = cluster.qos.get(partition.qos)
    names = [(partition.qos, bound), (_qos_name(request, own), job_qos)]
    if job_qos and "OverPartQOS" in job_qos.flags:
        names.reverse()
    rules = [(f"QOS {name}", qos) for name, qos in names if qos is not None]
    account = f"account {own.account}" if own else ""
    jobs = [(setter, qos.max_of_job) for setter, qos in rules]
    users = [(setter, qos.max_of_user) for setter, qos in rules]
    groups = [(setter, qos.max_of_all) for setter, qos in rules]
    nodes = [(setter, qos.max_of_node) for setter, qos in rules]
    if own:
        mine = f"your limits in {account}"
        jobs.append((mine, own.max_of_job))
        nodes.append((mine, own.max_of_node))
        groups.append((mine, own.max_of_user))
        groups.append((account, own.max_of_account or {}))
    least: dict[str, Limit] = {}
    for setter, qos in rules:
        for what, number in qos.min_of_job.items():
            least.setdefault(what, Limit(number, setter))
    times = [(setter, _seconds(qos)) for setter, qos in rules]
    times += [(f"your limits in {account}", own.max_time_s)] if own else []
    setter, time_s = next(((who, s) for who, s in times if s is not None), ("", None))
    return Limits(
        job=_least_of(_first(jobs), _first(users), _first(groups)),
        node=_first(nodes),
        least=least,
        time_s=time_s,
        time_setter=setter,
        # Only the job's own QOS lifts this limit, the partition's does not (Slurm 22.05).
        partition_time_holds=job_qos is None or "PartitionTimeLimit" not in job_qos.flags,
        unread_account=own.account if own and own.max_of_account is None else "",
    )


def _seconds(qos: Qos) -> float | None:
    return parse_duration(qos.max_time) if qos.max_time else None


def _first(rules: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, Limit]:
    """Return each resource's limit from the first that has one."""
    found: dict[str, Limit] = {}
    for setter, numbers in rules:
        for what, number in numbers.items():
            found.setdefault(what, Limit(number, setter))
    return found


def _least_of(*rules: Mapping[str, Limit]) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    for limits in rules:
        for what, limit in limits.items():
            if what not in found or limit.most < found[what].most:
                found[what] = limit
    return found


def _account(request: Request, live: Live) -> str:
    return request.account or live.default_account


def _association(request: Request, partition: Partition, live: Live | None) -> Association | None:
    """Return the user's association with the account in this partition. None: none is known."""
    if live is None or live.associations is None:
        return None
    account = _account(request, live).lower()
    own = [one for one in live.associations if one.account.lower() == account]
    of_all = [one for one in own if not one.partition]
    return next((one for one in own if one.partition == partition.name), next(iter(of_all), None))


def _qos_name(request: Request, own: Association | None) -> str:
    """Return the QOS that the job has: the one named, hers, the only one, or the cluster's own."""
    if request.qos:
        return request.qos
    if own is None:
        return ""
    only = own.qos[0] if len(own.qos) == 1 else ""
    return own.default_qos or only or (_ROOTS_QOS if _ROOTS_QOS in own.qos else "")


def access_refusals(
    request: Request, cluster: Cluster, partition: Partition, kind: NodeKind, live: Live | None
) -> Iterator[Refusal]:
    """Yield why the user's job may not use the partition or its nodes at all, or not now."""
    where, source = f"partition {partition.title}", partition.source
    state = (live.states or {}).get(partition.name, "UP") if live else "UP"
    if state != "UP":
        what = _STATES.get(state, "it may take no jobs")
        yield Refusal(
            kind="partition_state",
            sentence=f"{where} is {state} now: {what}",
            source="Slurm scontrol show partition, asked now",
        )
    elif in_service(partition, kind, live) == 0:
        yield Refusal(
            kind="nodes_out_of_service",
            sentence=f"all nodes of kind {kind.name} in {where} are out of service now",
            source="Slurm sinfo, asked now",
        )
    if partition.needs_reservation and not request.reservation:
        yield Refusal(
            kind="needs_reservation",
            sentence=f"{where} accepts only jobs with a reservation",
            source=source,
            instead="--reservation NAME",
        )
    if live is not None:
        yield from _member_refusals(request, cluster, partition, live)


def in_service(partition: Partition, kind: NodeKind, live: Live | None) -> int | None:
    """Return how many nodes of a kind take jobs of a partition now. None: it is not known."""
    gpus = tuple(sorted((name, count or 0) for name, count in kind.all_gpus))
    cpus = kind.cores * kind.threads_per_core
    own = [
        one
        for one in (live.nodes if live and live.nodes else ())
        if (one.partition, one.cpus, one.gpus) == (partition.name, cpus, gpus)
    ]
    return sum(one.in_service for one in own) if own else None


def _member_refusals(
    request: Request, cluster: Cluster, partition: Partition, live: Live
) -> Iterator[Refusal]:
    where, source = f"partition {partition.title}", partition.source
    if partition.groups and live.groups is not None and not {*partition.groups} & {*live.groups}:
        yield Refusal(
            kind="group",
            sentence=f"only members of the Unix group{'s' * (len(partition.groups) > 1)} "
            f"{_some(partition.groups)} can use {where}, and you are not a member",
            source=source,
        )
    if live.associations is None:
        return
    account, own = _account(request, live), _association(request, partition, live)
    accounts = sorted({one.account for one in live.associations})
    if own is None and cluster.enforced:
        have = f"yours: {_some(accounts)}" if accounts else "the accounting knows none of yours"
        yield Refusal(
            kind="account",
            sentence=f"account {account!r} is not yours in {where} ({have})"
            if account
            else f"no account is named, and you have no default one ({have})",
            source="Slurm sacctmgr show associations",
            instead=f"--account {accounts[0]}" if accounts else "",
        )
        return
    # These two hold even where the accounting enforces nothing.
    yield from _account_refusals(account, accounts, partition)
    yield from _qos_refusals(_qos_name(request, own), own, cluster, partition)


def _account_refusals(account: str, accounts: list[str], partition: Partition) -> Iterator[Refusal]:
    allowed = {one.lower() for one in partition.accounts}
    denied = {one.lower() for one in partition.denied_accounts}
    may = {one: _may(one.lower(), allowed, denied) for one in (account, *accounts)}
    if may[account]:
        return
    whose = (
        f"accepts only the accounts {_some(partition.accounts)}"
        if allowed
        else f"accepts no jobs of the accounts {_some(partition.denied_accounts)}"
    )
    other = next((one for one in accounts if may[one]), "")
    yield Refusal(
        kind="account",
        sentence=f"partition {partition.title} {whose}; the job uses account {account}",
        source=partition.source,
        instead=f"--account {other}" if other else "",
    )


def _qos_refusals(
    name: str, own: Association | None, cluster: Cluster, partition: Partition
) -> Iterator[Refusal]:
    mine = own.qos if own else ()
    if own and name and mine and name not in mine and "qos" in cluster.enforced:
        yield Refusal(
            kind="qos",
            sentence=f"QOS {name} is not yours in account {own.account}, which has {_some(mine)}",
            source="Slurm sacctmgr show associations",
            instead=f"--qos {own.default_qos or mine[0]}",
        )
        return
    allowed, denied = partition.allowed_qos, partition.denied_qos
    if _may(name, allowed, denied):
        return
    whose = f"accepts only QOS {_some(allowed)}" if allowed else f"refuses QOS {_some(denied)}"
    other = next((one for one in mine if _may(one, allowed, denied)), "")
    yield Refusal(
        kind="qos",
        sentence=f"partition {partition.title} {whose}; the job has "
        + (f"QOS {name}" if name else "none"),
        source=partition.source,
        instead=f"--qos {other}" if other else "",
    )


def _may(one: str, allowed: Collection[str], denied: Collection[str]) -> bool:
    """Return whether lists take a name; an empty list of those allowed takes all."""
    return (not allowed or one in allowed) and one not in denied


def unknown_of(
    cluster: Cluster, partition: Partition, live: Live | None, limits: Limits
) -> tuple[str, ...]:
    """Return what could refuse the job and cannot be known here, each in a few words."""
    found = []
    if cluster.enforced and (live is None or live.associations is None):
        found.append("the limits of your accounts")
    if (live is None or live.states is None) and cluster.enforced:
        found.append("whether the partition accepts jobs now")
    if partition.qos and partition.qos not in cluster.qos:
        found.append(f"the limits of QOS {partition.qos}")
    if partition.groups and (live is None or live.groups is None):
        found.append(f"whether you are in the Unix group {_some(partition.groups)}")
    if limits.unread_account:
        found.append(f"the limits of account {limits.unread_account} for all its users together")
    return tuple(found)


def _some(names: Iterable[str]) -> str:
    own = list(names)
    return ", ".join(own[:3]) + (f" and {len(own) - 3} more" if own[3:] else "")
