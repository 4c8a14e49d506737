"""A random site as the text of Slurm's files. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from random_sites import USER, Kind, Site

__all__ = ["gres_text", "lines_of", "live_names", "nodes_text", "sacctmgr_lines"]

_OF_QOS = ("QOS", "AllowQos", "DenyQos", "DefaultQOS")
"""Options that name QOS, whose names all clusters of a database share."""


def nodes_text(site: Site, name: str, ports: range, host: str, *, live: bool) -> str:
    """Return the lines of slurm.conf on nodes and partitions.

    Args:
        site: the site to stand for.
        name: its cluster's name.
        ports: one for each live node, and one that the others share.
        host: the name of this machine.
        live: whether the first node of each kind runs jobs.
    """
    lines = []
    for number, kind in enumerate(site.kinds):
        alive = 1 if live and _can_live(kind) else 0
        where = f"NodeHostname={host} NodeAddr=127.0.0.1"
        if alive:
            first = f"NodeName={kind.name}-n1 {where} Port={ports[number]} Weight=1"
            lines.append(f"{first} {_hardware(kind)}")
        if kind.count > alive:
            others = f"NodeName={_names(kind, alive + 1)} {where} Port={ports[-1]} Weight=1000"
            lines.append(f"{others} State=CLOUD {_hardware(kind)}")
    return "\n".join([*lines, *_partitions(site, name)]) + "\n"


def gres_text(site: Site, device: str, *, live: bool) -> str:
    """Return gres.conf; live nodes' GPUs are the files `device` + number."""
    lines = []
    for kind in site.kinds:
        alive = 1 if live and _can_live(kind) else 0
        begin = 0
        for gpus in kind.gpus:
            what = f"Name=gpu{f' Type={gpus.type}' if gpus.type else ''}"
            if alive:
                files = f"{device}[{begin}-{begin + gpus.count - 1}]"
                lines.append(f"NodeName={kind.name}-n1 {what} File={files}")
            if kind.count > alive:
                lines.append(f"NodeName={_names(kind, alive + 1)} {what} Count={gpus.count}")
            begin += gpus.count
    return "\n".join(lines) + "\n"


def live_names(site: Site) -> list[tuple[int, str]]:
    """Return the nodes that have a slurmd if the site is live, with the places of their ports."""
    used = {name for part in site.parts for name in part.kinds}
    return [
        (number, f"{kind.name}-n1")
        for number, kind in enumerate(site.kinds)
        if _can_live(kind) and kind.name in used
    ]


def sacctmgr_lines(site: Site, name: str) -> list[str]:
    """Return what sacctmgr is to do once the TRES of GPUs are known."""
    lines = [f"add cluster {name}"]
    lines += [f"add qos {one.name}_{name} {_words(site, name, one.words)}" for one in site.qos]
    # sacctmgr is slow: accounts with the same limits go together.
    groups: dict[str, list[str]] = {}
    users: dict[str, list[str]] = {}
    for account in site.accounts:
        limits = {key: value for key, value in account.user_words.items() if "QOS" not in key}
        groups.setdefault(_words(site, name, account.words), []).append(account.name)
        users.setdefault(_words(site, name, limits), []).append(account.name)
    lines += [f"add account {','.join(own)} cluster={name} {key}" for key, own in groups.items()]
    lines += [
        f"add user {USER} account={','.join(own)} cluster={name} {key}"
        for key, own in users.items()
    ]
    first = site.accounts[0].name
    if len(site.accounts) > 1:
        lines.append(f"modify user where name={USER} cluster={name} set defaultaccount={first}")
    for account in site.accounts:
        choice = {key: value for key, value in account.user_words.items() if "QOS" in key}
        if choice:
            where = f"where name={USER} cluster={name} account={account.name}"
            lines.append(f"modify user {where} set {_words(site, name, choice)}")
    return [line.rstrip() for line in lines]


def lines_of(site: Site) -> str:
    """Return what makes a site what it is, to be read in a report."""
    lines = [" ".join(f"{key}={value}" for key, value in site.words.items() if value)]
    for kind in site.kinds:
        drained = f"  # {kind.drained} drained" if kind.drained else ""
        lines.append(f"NodeName={_names(kind, 1)} {_hardware(kind)}{drained}")
    lines += _partitions(site, "")
    lines += [f"qos {one.name}: {_words(site, '', one.words)}" for one in site.qos]
    lines += [
        f"account {one.name}: {_words(site, '', one.words)} user: "
        f"{_words(site, '', one.user_words)}"
        for one in site.accounts
        if one.words or one.user_words
    ]
    return "\n".join(lines)


def _can_live(kind: Kind) -> bool:
    # slurmd keeps cores and memory for the system with cgroups, which are not the tests' own.
    return not kind.words and kind.drained < kind.count


def _partitions(site: Site, name: str) -> list[str]:
    lines = []
    for part in site.parts:
        nodes = ",".join(_names(site.kind(kind), 1) for kind in part.kinds)
        lines.append(f"PartitionName={part.name} Nodes={nodes} {_words(site, name, part.words)}")
    return lines


def _names(kind: Kind, first: int) -> str:
    return f"{kind.name}-n[{first}-{kind.count}]"


def _hardware(kind: Kind) -> str:
    words = [f"CPUs={kind.cpus} Sockets={kind.sockets} CoresPerSocket={kind.cores}"]
    words.append(f"ThreadsPerCore={kind.threads} RealMemory={kind.memory_mib}")
    words += [f"TmpDisk={kind.disk_mib}"] if kind.disk_mib else []
    gres = [f"gpu:{f'{gpus.type}:' if gpus.type else ''}{gpus.count}" for gpus in kind.gpus]
    words += [f"Gres={','.join(gres)}"] if gres else []
    words += [f"Feature={','.join(kind.features)}"] if kind.features else []
    words += [f"{key}={value}" for key, value in kind.words.items()]
    return " ".join(words)


def _words(site: Site, name: str, words: Mapping[str, str]) -> str:
    known = {one.name for one in site.qos}
    found = []
    for key, value in words.items():
        text = value
        if key in _OF_QOS and name:
            named = [f"{one}_{name}" if one in known else one for one in value.split(",")]
            text = ",".join(named)
        found.append(f"{key}={text}")
    return " ".join(found)
