"""Ask the running Slurm which partitions accept jobs, and what the user may use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from teho.model.member import Association, Live, NodesNow
from teho.schedulers.inventory import Ask, answer_now
from teho.schedulers.slurm.resources import gpus_in, tres_limits
from teho.schedulers.slurm.rows import Row, columns, settings, text_rows
from teho.schedulers.slurm.values import limit_seconds

__all__ = ["slurm_live"]

_COLUMNS = "Account,ParentName,User,Partition,DefaultQOS,QOS,MaxTRES,MaxTRESPerNode,GrpTRES,MaxWall"
# sinfo(1), NODE STATE CODES, short forms.
_OUT_OF_SERVICE = ("drain", "drng", "down", "fail", "err", "inval")


def slurm_live(ask: Ask, *, user: str, groups: Sequence[str]) -> Live:
    """Ask for the partitions' states and the user's associations, in parallel.

    A fact is None if its answer does not come in time.

    Args:
        ask: runs a command that only asks.
        user: the user whose associations are requested.
        groups: the Unix groups of the user.
    """
    with ThreadPoolExecutor(4) as pool:
        states = pool.submit(_states, ask)
        nodes = pool.submit(_nodes, ask)
        config = pool.submit(answer_now, ask, "scontrol", "show", "config")
        default = pool.submit(
            answer_now, ask, "sacctmgr", "-nP", "show", "user", "where", f"name={user}",
            "format=DefaultAccount",
        )  # fmt: skip
        text = config.result()
    cluster = settings(text).get("ClusterName", "") if text is not None else ""
    account = (default.result() or "").strip().partition("\n")[0]
    return Live(
        states=states.result(),
        nodes=nodes.result(),
        groups=tuple(groups),
        default_account=account,
        associations=_associations(ask, cluster, user) if cluster else None,
    )


def _states(ask: Ask) -> dict[str, str] | None:
    text = answer_now(ask, "scontrol", "-a", "-o", "show", "partition")
    if text is None:
        return None
    rows = [row for row in text_rows(text) if row.get("PartitionName")]
    return {row["PartitionName"]: row.get("State", "UP") for row in rows} if rows else None


def _nodes(ask: Ask) -> tuple[NodesNow, ...] | None:
    text = answer_now(ask, "sinfo", "-a", "-e", "-h", "-o", "%R|%c|%G|%t|%D")
    if text is None:
        return None
    found: dict[tuple[str, int, tuple[tuple[str, int], ...]], int] = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) != 5 or not cells[1].isdecimal() or not cells[4].isdecimal():
            continue
        name, cpus, gres, state, count = cells
        key = (name, int(cpus), tuple(sorted(gpus_in(gres))))
        working = 0 if state.startswith(_OUT_OF_SERVICE) else int(count)
        found[key] = found.get(key, 0) + working
    return tuple(
        NodesNow(partition=name, cpus=cpus, gpus=gpus, in_service=working)
        for (name, cpus, gpus), working in found.items()
    )


def _associations(ask: Ask, cluster: str, user: str) -> tuple[Association, ...] | None:
    """Return the user's associations; None: the accounting cannot be asked."""
    own = _rows(ask, f"cluster={cluster}", f"user={user}")
    if own is None:
        return None
    accounts = sorted({row["Account"] for row in own if row.get("Account")})
    above = _above(ask, cluster, accounts) if accounts else {}
    return tuple(_association(row, above) for row in own if row.get("Account"))


def _rows(ask: Ask, *where: str) -> list[Row] | None:
    text = answer_now(
        ask, "sacctmgr", "-nP", "show", "associations", "where", *where, f"format={_COLUMNS}"
    )
    return None if text is None else columns(text, _COLUMNS)


def _above(ask: Ask, cluster: str, accounts: Sequence[str]) -> dict[str, Row]:
    """Return the rows of accounts and their parents by name, as far as they can be read."""
    found: dict[str, Row] = {}
    wanted = list(accounts)
    while wanted:
        rows = _rows(ask, f"cluster={cluster}", f"account={','.join(wanted)}", "user=")
        named = {row["Account"]: row for row in rows or () if not row.get("User")}
        found |= named
        parents = {row.get("ParentName", "") for row in named.values()}
        wanted = sorted(parents - found.keys() - {""})
    return found


def _of_account(name: str, above: dict[str, Row]) -> dict[str, int] | None:
    """Return the lowest limits of an account and its parents; None: not all can be read."""
    found: dict[str, int] = {}
    seen = set[str]()
    while name and name not in seen:
        if name not in above:
            return None
        seen.add(name)
        for what, most in tres_limits(above[name].get("GrpTRES", "")).items():
            found[what] = min(most, found.get(what, most))
        name = above[name].get("ParentName", "")
    return found


def _association(row: Row, above: dict[str, Row]) -> Association:
    return Association(
        account=row["Account"],
        partition=row.get("Partition", ""),
        default_qos=row.get("DefaultQOS", ""),
        qos=tuple(re.findall(r"[^,]+", row.get("QOS", ""))),
        max_of_job=tres_limits(row.get("MaxTRES", "")),
        max_of_node=tres_limits(row.get("MaxTRESPerNode", "")),
        max_of_user=tres_limits(row.get("GrpTRES", "")),
        max_of_account=_of_account(row["Account"], above),
        max_time_s=limit_seconds(row.get("MaxWall", "")),
    )
