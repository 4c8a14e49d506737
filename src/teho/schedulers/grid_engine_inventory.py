"""A cluster's facts from its live Grid Engine: what `qconf` tells to any user.

`qhost` says what is free of a consumable just now, `qconf -se` what there is of it:
so the latter is asked, host by host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import msgspec

from teho.errors import InputError, RefusedError, UnitError
from teho.model.cluster import (
    Account,
    Cluster,
    Dialect,
    LocalDisk,
    NodeKind,
    Partition,
    Source,
)
from teho.schedulers.inventory import Ask, Host, asked, kinds_of, length
from teho.units import parse_bytes, parse_duration

__all__ = ["grid_engine_cluster"]

_ARCHES = {"lx-amd64": "x86_64", "lx-arm64": "aarch64", "lx-ppc64le": "ppc64le"}
_GPU = re.compile(r"gpu|cuda|coproc", re.IGNORECASE)
_PREFIX = re.compile(r"(?:coproc|gpu|cuda)[_.]", re.IGNORECASE)
_OVERRIDE = re.compile(r",?\[([^=\]]+)=([^\]]*)\]")

Settings = dict[str, str]


class _Complex(msgspec.Struct, frozen=True):
    """One attribute of `qconf -sc` that matters here (complex(5))."""

    requestable: str
    consumable: str


class _Asked(msgspec.Struct, frozen=True):
    """The answers."""

    queues: dict[str, Settings]
    hosts: dict[str, Settings]
    groups: dict[str, tuple[str, ...]]
    complexes: dict[str, _Complex]
    environments: dict[str, Settings]
    """Parallel environments, by name."""
    config: Settings
    quotas: tuple[str, ...]
    version: str


def grid_engine_cluster(
    ask: Ask, *, environment: Mapping[str, str], host: str, today: date, name: str = ""
) -> Cluster:
    """Ask Grid Engine what the cluster has and allows.

    What it does not tell is left out, named in each partition's `unknown`, and told in
    the cluster's notes. A queue is a partition. Of what a host and a queue both limit,
    the smaller counts (queue_conf(5), host_conf(5), complex(5)).

    Args:
        ask: runs a command; only questions are asked.
        environment: variables of this session, for `SGE_CLUSTER_NAME`.
        host: name of this machine, by which the cluster is recognised.
        today: date of the facts.
        name: of the cluster; empty: `SGE_CLUSTER_NAME`.

    Raises:
        InputError: the cluster has no name.
        SchedulerError: Grid Engine does not answer.
    """
    told = _ask_all(ask)
    own_name = environment.get("SGE_CLUSTER_NAME", "")
    if not name and not own_name:
        raise InputError(
            "Grid Engine has no name for its cluster here (SGE_CLUSTER_NAME)",
            next_step="`teho clusters discover --name NAME`",
        )
    gpus = _gpu_types(told)
    places = [_place(told, gpus, queue, one) for queue in told.queues
              for one in _hosts_of(told, queue)]  # fmt: skip
    kinds = kinds_of(places, "GE qconf -se, -sq")
    return Cluster(
        name=(name or own_name).lower(),
        title=own_name or name,
        site="not known",
        scheduler="grid_engine",
        status="active",
        verified_on=today,
        hosts=(host,),
        recognised_by={"SGE_CLUSTER_NAME": own_name} if own_name else {},
        sources={"GE": Source(document=f"Grid Engine {told.version} on {host}", read_on=today)},
        nodes=tuple(kinds),
        partitions=tuple(_partition(told, queue, kinds) for queue in told.queues),
        dialect=_dialect(told, gpus),
        account=Account(
            required=told.config.get("enforce_project", "false") != "false",
            option="-P",
            example="project",
            source="GE qconf -sconf: enforce_project",
        ),
        local_disk=LocalDisk(
            variable="TMPDIR",
            source="GE queue_conf(5): tmpdir",
            notes="Grid Engine makes it for the job and removes it; its size is not known.",
        ),
        notes=tuple(_notes(told)),
    )


def _ask_all(ask: Ask) -> _Asked:
    def settings(*argv: str) -> Settings:
        return _settings(asked(ask, "qconf", *argv))

    def names(option: str) -> list[str]:
        try:
            return asked(ask, "qconf", option).split()
        except RefusedError:  # there is none of this sort
            return []

    queues = {name: settings("-sq", name) for name in names("-sql")}
    wanted = {word for queue in queues.values() for word in re.findall(r"@[\w.-]+", str(queue))}
    groups = {
        group: tuple(asked(ask, "qconf", "-shgrp_resolved", group).split())
        for group in sorted(wanted)
    }
    return _Asked(
        queues=queues,
        hosts={name: settings("-se", name) for name in names("-sel")},
        groups=groups,
        complexes=_complexes(asked(ask, "qconf", "-sc")),
        environments={name: settings("-sp", name) for name in names("-spl")},
        config=settings("-sconf"),
        quotas=tuple(names("-srqsl")),
        version=asked(ask, "qconf", "-help").partition("\n")[0].removeprefix("SGE").strip(),
    )


def _settings(text: str) -> Settings:
    """Read `key value` lines, of which a backslash joins several."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair}


def _complexes(text: str) -> dict[str, _Complex]:
    """Read `qconf -sc`: name, shortcut, type, relop, requestable, consumable, default, urgency."""
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {row[0]: _Complex(row[4], row[5]) for row in rows if len(row) >= 6}


def _gpu_types(told: _Asked) -> dict[str, str]:
    """Return the consumables that are GPUs, each with the GPU's type.

    The type is the name without what the names of all of them begin with, such as
    `v100` of `coproc_v100`.
    """
    names = [
        name
        for name, one in told.complexes.items()
        if one.consumable != "NO" and _GPU.search(name) and "mem" not in name
    ]
    prefixes = {match[0] if (match := _PREFIX.match(name)) else "" for name in names}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    return {name: name.removeprefix(prefix) for name in names}


def _hosts_of(told: _Asked, queue: str) -> list[str]:
    words = re.split(r"[\s,]+", told.queues[queue].get("hostlist", ""))
    names = [name for word in words for name in told.groups.get(word, (word,))]
    return [name for name in dict.fromkeys(names) if name in told.hosts]


def _of_host(told: _Asked, text: str, host: str) -> str:
    """Return the value of a queue on one host: `1,[node1=40],[@gpu=8]`."""
    value = _OVERRIDE.sub("", text)
    for target, own in _OVERRIDE.findall(text):
        if host in told.groups.get(target, (target,)):
            value = own
    return value


def _place(told: _Asked, gpus: Mapping[str, str], queue: str, host: str) -> Host:
    """Return what a queue has on one host."""
    settings = told.queues[queue]
    limits = [
        _pairs(told.hosts[host].get("complex_values", "")),
        _pairs(_of_host(told, settings.get("complex_values", ""), host)),
    ]
    loads = _pairs(told.hosts[host].get("load_values", ""))
    slots = int(_of_host(told, settings.get("slots", "0"), host) or 0)
    cores = max(_number(loads.get("m_core", loads.get("num_proc", ""))), slots, 1)
    memory = _smallest("h_vmem", limits) or _bytes(loads.get("mem_total", ""))
    counts = [(gpus[name], int(found)) for name in gpus if (found := _smallest(name, limits))]
    arch = loads.get("arch", "")
    return Host(
        name=host,
        cores=cores,
        usable_cores=slots or cores,
        sockets=_number(loads.get("m_socket", "")) or None,
        memory_mib=int(memory) // 1024**2 if memory else None,
        gpus=tuple(counts),
        arch=_ARCHES.get(arch, arch or "x86_64"),
        partitions=(queue,),
    )


def _pairs(text: str) -> Settings:
    items = (item.strip().partition("=") for item in text.split(",") if "=" in item)
    return {key: value for key, _, value in items}


def _smallest(name: str, limits: Sequence[Settings]) -> float | None:
    found = [_bytes(limit[name]) for limit in limits if name in limit]
    return min((value for value in found if value is not None), default=None)


def _bytes(text: str) -> float | None:
    """Read a number or an amount of memory; None for neither, such as `INFINITY` or `2(0 1)`."""
    try:
        # A map of resources lists what there is behind its count.
        return parse_bytes(text.partition("(")[0])
    except UnitError:
        return None


def _number(text: str) -> int:
    return int(float(text)) if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) else 0


def _partition(told: _Asked, queue: str, kinds: Mapping[NodeKind, tuple[Host, ...]]) -> Partition:
    settings = told.queues[queue]
    own = {kind.name: [host for host in members if queue in host.partitions]
           for kind, members in kinds.items()}  # fmt: skip
    slots = [host.usable_cores for members in own.values() for host in members]
    rules = [
        told.environments[name].get("allocation_rule", "")
        for name in _listed(settings.get("pe_list", ""))
        if name in told.environments
    ]
    jobs = _number(told.config.get("max_u_jobs", ""))
    longest = _OVERRIDE.sub("", settings.get("h_rt", "INFINITY"))
    lists = _listed(settings.get("user_lists", ""))
    return Partition(
        name=queue,
        kinds=tuple(kind for kind, members in own.items() if members),
        max_time=None if longest == "INFINITY" else length(parse_duration(longest)),
        # Without an environment that spreads a job it stays on one host (sge_pe(5)).
        max_nodes=1 if all(rule == "$pe_slots" for rule in rules) else None,
        max_cores_per_node=max(slots, default=None),
        max_jobs=jobs or None,
        purpose="interactive" if settings.get("qtype") == "INTERACTIVE" else "production",
        needs=f"one of the user lists {', '.join(lists)}" if lists else "",
        source=f"GE qconf -sq {queue}, -sconf",
        unknown=("max_gpus", "max_cores", "max_running_jobs", "billing"),
    )


def _listed(text: str) -> list[str]:
    names = re.split(r"[\s,]+", _OVERRIDE.sub("", text))
    return [name for name in names if name and name != "NONE"]


def _dialect(told: _Asked, gpus: Mapping[str, str]) -> Dialect:
    nothing = _Complex("YES", "NO")
    memory = told.complexes.get("h_vmem", nothing).consumable
    together = [
        name for name, one in told.environments.items() if one.get("allocation_rule") == "$pe_slots"
    ]
    name, gpu_type = next(iter(gpus.items()), ("gpu", "gpu"))
    a_slot = sorted(name for name in gpus if told.complexes[name].consumable == "YES")
    return Dialect(
        gpus=f"-l {name.removesuffix(gpu_type)}{{type}}={{count}}",
        cores=f"-pe {together[0]} {{cores}}" if together else "",
        partition="optional",
        memory={"YES": "core", "JOB": "node"}.get(memory, "none"),  # type: ignore[arg-type]
        time_required=told.complexes.get("h_rt", nothing).requestable == "FORCED",
        source="GE qconf -sc, -sp; qsub(1)",
        notes=f"Of {', '.join(a_slot)} a job has as many for each slot." if a_slot else "",
    )


def _notes(told: _Asked) -> Iterator[str]:
    """Yield what Grid Engine does not tell, one sentence each."""
    yield (
        "Grid Engine does not tell, so this file does not say: what a GPU-hour costs, the fair "
        "share of a GPU, its memory and product name, how software is loaded, who runs the "
        "cluster. GPUs are the consumables whose names say so; the vendor is taken from the type."
    )
    yield "hosts names this one machine alone; a pattern such as login* recognises all of them."
    if told.quotas:
        yield (
            f"Resource quotas may hold tighter limits, which are not read: "
            f"{', '.join(told.quotas)} (qconf -srqs)."
        )
    if told.config.get("jsv_url", "none").lower() != "none":
        yield (
            "A verifier (jsv_url) may change or refuse a job by rules of the site's own; Grid "
            "Engine does not tell them."
        )
