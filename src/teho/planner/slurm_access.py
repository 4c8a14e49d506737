"""Find out whether Slurm lets the user's job use a partition, its nodes, an account and a QOS."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.cluster import NodeKind, Partition
from teho.model.member import Association, Live
from teho.model.plan import Refusal
from teho.planner.place import Case
from teho.planner.refusal import first_names, not_listed
from teho.planner.slurm_limits import account_of, association_of, qos_name

__all__ = ["in_service", "slurm_access", "unknown_to_slurm"]

_STATES = {
    "DOWN": "jobs wait, but they do not start",
    "DRAIN": "running jobs finish, but no new jobs start",
    "INACTIVE": "the partition accepts no jobs",
}


def slurm_access(case: Case) -> Iterator[Refusal]:
    """Yield the reasons why the job may not use the partition or its nodes, now or at all."""
    if not case.scheduler.has_associations:
        return
    partition, state = case.partition, case.state
    where = f"partition {partition.title}"
    if state != "UP":
        yield Refusal(
            kind="partition_state",
            sentence=f"{where} is {state} now: {_STATES.get(state, 'it may refuse jobs')}",
            source="`scontrol show partition`, read just now",
        )
    elif in_service(partition, case.kind, case.live) == 0:
        yield Refusal(
            kind="nodes_out_of_service",
            sentence=f"all nodes of kind {case.kind.name} in {where} are out of service now",
            source="`sinfo`, read just now",
        )
    if partition.needs_reservation and not case.request.reservation:
        yield Refusal(
            kind="needs_reservation",
            sentence=f"{where} accepts only jobs with a reservation",
            source=partition.source,
            instead="--reservation NAME",
        )
    if case.live is not None:
        yield from _membership(case, case.live)


def in_service(partition: Partition, kind: NodeKind, live: Live | None) -> int | None:
    """Return the number of nodes of a kind that accept jobs of a partition now. None: unknown."""
    gpus = tuple(sorted((name, count or 0) for name, count in kind.all_gpus))
    cpus = kind.cores * kind.threads_per_core
    own = [
        one
        for one in (live.nodes if live and live.nodes else ())
        if (one.partition, one.cpus, one.gpus) == (partition.name, cpus, gpus)
    ]
    return sum(one.in_service for one in own) if own else None


def _membership(case: Case, live: Live) -> Iterator[Refusal]:
    request, partition = case.request, case.partition
    where, groups = f"partition {partition.title}", partition.groups
    if groups and live.groups is not None and not {*groups} & {*live.groups}:
        yield Refusal(
            kind="group",
            sentence=f"only members of the Unix group{'s' * (len(groups) > 1)} "
            f"{first_names(groups)} can use {where}, and you are not a member",
            source=partition.source,
        )
    if live.associations is None:
        return
    account, own = account_of(request, live), association_of(request, partition, live)
    accounts = sorted({one.account for one in live.associations})
    if own is None and case.cluster.enforced:
        have = (
            f"your accounts: {first_names(accounts)}"
            if accounts
            else "Slurm's accounting has no account for you"
        )
        yield Refusal(
            kind="account",
            sentence=f"you cannot use account {account!r} in {where} ({have})"
            if account
            else f"the job names no account, and you have no default account ({have})",
            source="`sacctmgr show associations`",
            instead=f"--account {accounts[0]}" if accounts else "",
        )
        return
    # Slurm applies these two rules even if its accounting enforces nothing.
    lists = (partition.accounts, partition.denied_accounts)
    yield from not_listed(
        "account", where, "account", account, lists, accounts, partition.source, any_case=True
    )
    yield from _qos(case, own)


def _qos(case: Case, own: Association | None) -> Iterator[Refusal]:
    partition, name = case.partition, qos_name(case.request, own)
    mine = own.qos if own else ()
    if own and name and mine and name not in mine and "qos" in case.cluster.enforced:
        yield Refusal(
            kind="qos",
            sentence=f"you cannot use QOS {name} with account {own.account}; this account allows "
            f"{first_names(mine)}",
            source="`sacctmgr show associations`",
            instead=f"--qos {own.default_qos or mine[0]}",
        )
        return
    lists = (partition.allowed_qos, partition.denied_qos)
    where = f"partition {partition.title}"
    yield from not_listed("qos", where, "QOS", name, lists, mine, partition.source)


def unknown_to_slurm(case: Case) -> Iterator[str]:
    """Yield in a few words each rule that could refuse the job and is unknown here."""
    partition, live, enforced = case.partition, case.live, case.cluster.enforced
    if enforced and (live is None or live.associations is None):
        yield "the limits of your accounts"
    if enforced and (live is None or live.states is None):
        yield "whether the partition accepts jobs now"
    if partition.qos and partition.qos not in case.cluster.qos:
        yield f"the limits of QOS {partition.qos}"
    if partition.groups and (live is None or live.groups is None):
        yield f"whether you are in the Unix group {first_names(partition.groups)}"
    if case.limits.unread_account:
        yield f"the limits of account {case.limits.unread_account} for all its users together"
