"""A cluster's facts from its live Grid Engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec

from teho.errors import InputError, UnitError
from teho.model.cluster import (
    Account,
    Cluster,
    Dialect,
    LocalDisk,
    NodeKind,
    ParallelEnvironment,
    Partition,
    Quota,
    Source,
)
from teho.schedulers.grid_engine.answers import (
    Complex,
    GridEngineAnswers,
    QuotaText,
    Settings,
    answers_of,
    listed,
)
from teho.schedulers.inventory import Ask, Host, is_product, kinds_of, length
from teho.units import mib_text, parse_bytes, parse_duration

__all__ = ["grid_engine_cluster"]

_ARCHES = {"lx-amd64": "x86_64", "lx-arm64": "aarch64", "lx-ppc64le": "ppc64le"}
_GPU = re.compile(r"gpu|cuda|coproc|nvidia|tesla|geforce|radeon|instinct", re.IGNORECASE)
_PREFIX = re.compile(r"(?:coproc|gpu|cuda|nvidia)[_.-]", re.IGNORECASE)
_GENERAL = re.compile(
    r"(?:n|num_?)?(?:gpu|cuda|coproc)s?(?:_(?:cards?|devs?|devices?))?", re.IGNORECASE
)
"""Names that say GPU, and not which."""
_NOTHING = Complex("", "YES", "NO", "0")
_RULES: dict[str, Literal["one_node", "fill", "spread"]] = {
    "$pe_slots": "one_node",
    "$fill_up": "fill",
    "$round_robin": "spread",
}
_MEMORIES = ("h_vmem", "mem_free", "virtual_free", "h_rss", "s_vmem")
"""What sites count memory by, the most usual first."""


def grid_engine_cluster(
    ask: Ask, *, environment: Mapping[str, str], host: str, today: date, name: str = ""
) -> Cluster:
    """Ask Grid Engine what the cluster has and allows.

    What it does not report is left out, named in each partition's `unknown`, and told in
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
    told = answers_of(ask)
    own_name = environment.get("SGE_CLUSTER_NAME", "")
    if not name and not own_name:
        raise InputError(
            "Grid Engine has no name for its cluster here (SGE_CLUSTER_NAME)",
            next_step="`teho clusters discover --name NAME`",
        )
    gpus = _gpu_types(told)
    places = [_place(told, gpus, queue, one) for queue in told.queues
              for one in told.hosts_of(queue)]  # fmt: skip
    kinds = _with_own_gpus(told, gpus, kinds_of(places, "GE qconf -se, -sq"))
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
        partitions=tuple(_partition(told, gpus, queue, kinds) for queue in told.queues),
        dialect=_dialect(told, gpus),
        account=Account(
            required=_needs_project(told),
            option="-P",
            example="project",
            source="GE qconf -sconf: enforce_project",
        ),
        local_disk=LocalDisk(
            variable="TMPDIR",
            source="GE queue_conf(5): tmpdir",
            notes="Grid Engine makes it for the job and removes it; its size is not known.",
        ),
        quotas=tuple(_quota(told, gpus, rule, kinds) for rule in told.quotas),
        notes=tuple(_notes(told)),
    )


def _gpu_types(told: GridEngineAnswers) -> dict[str, str]:
    """Return the consumables that are GPUs, each with the GPU's type.

    The type is the name without what the names of all of them begin with, such as
    `v100` of `coproc_v100`.
    """
    names = [
        name
        for name, one in told.complexes.items()
        if one.consumable != "NO" and one.type in {"INT", "DOUBLE", "RSMAP"}
        if (_GPU.search(name) or is_product(name)) and "mem" not in name
    ]
    prefixes = {match[0] if (match := _PREFIX.match(name)) else "" for name in names}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    return {name: name.removeprefix(prefix) for name in names}


def _with_own_gpus(
    told: GridEngineAnswers, gpus: Mapping[str, str], kinds: Mapping[NodeKind, tuple[Host, ...]]
) -> dict[NodeKind, tuple[Host, ...]]:
    """Return the kinds with what Grid Engine tells of their GPUs alone."""
    by_slot = {gpus[name] for name in gpus if told.complexes[name].consumable == "YES"}

    def known(kind: NodeKind) -> NodeKind:
        if kind.gpu is None:
            return kind
        gpu = msgspec.structs.replace(
            kind.gpu,
            per_slot=kind.gpu.type in by_slot,
            may_be_slice=kind.gpu.may_be_slice and not _GENERAL.fullmatch(kind.gpu.type),
        )
        return msgspec.structs.replace(kind, gpu=gpu)

    return {known(kind): members for kind, members in kinds.items()}


def _memory_of(told: GridEngineAnswers) -> str:
    """Return the attribute that jobs ask for memory by: what must be named, or is set aside."""
    counted = [
        name
        for name, one in told.complexes.items()
        if one.type == "MEMORY" and one.consumable != "NO" and one.requestable != "NO"
    ]
    ranks = {name: place for place, name in enumerate(_MEMORIES)}
    wanted = [name for name in counted if told.complexes[name].requestable == "FORCED"]
    known = sorted(
        (name for name in wanted or counted if name in ranks or not _GPU.search(name)),
        key=lambda name: ranks.get(name, len(ranks)),
    )
    return known[0] if known else _MEMORIES[0]


def _place(told: GridEngineAnswers, gpus: Mapping[str, str], queue: str, host: str) -> Host:
    """Return what a queue has on one host."""
    limits = [
        _pairs(told.hosts[host].get("complex_values", "")),
        _pairs(told.of_host(queue, "complex_values", host)),
    ]
    loads = _pairs(told.hosts[host].get("load_values", ""))
    slots = int(told.of_host(queue, "slots", host, "0") or 0)
    most = _smallest("slots", limits)
    slots = slots if most is None else min(slots, int(most))
    cores = max(_number(loads.get("m_core", loads.get("num_proc", ""))), slots, 1)
    # What hosts report of an attribute counts too, if it is less (complex(5), consumables).
    memory = _smallest(_memory_of(told), [*limits, loads])
    named = memory is not None or _memory_of(told) in told.queues[queue]
    if memory is None:
        memory = _bytes(loads.get("mem_total", ""))
    counts = [(gpus[name], int(found)) for name in gpus if (found := _smallest(name, limits))]
    arch = loads.get("arch", "")
    return Host(
        name=host,
        cores=cores,
        usable_cores=slots or cores,
        sockets=_number(loads.get("m_socket", "")) or None,
        memory_mib=int(memory) // 1024**2 if memory else None,
        memory_is_named=named,
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


def _partition(
    told: GridEngineAnswers,
    gpus: Mapping[str, str],
    queue: str,
    kinds: Mapping[NodeKind, tuple[Host, ...]],
) -> Partition:
    own = {kind: [host for host in members if queue in host.partitions]
           for kind, members in kinds.items()}  # fmt: skip
    own = {kind: members for kind, members in own.items() if members}
    slots = [host.usable_cores for members in own.values() for host in members]
    environments = _environments(told, queue, own)
    memory = told.complexes.get(_memory_of(told), _NOTHING)
    limits = (told.of_queue(queue, name, "INFINITY") for name in {_memory_of(told), "h_vmem"})
    each = min((number for text in limits if (number := _bytes(text)) is not None), default=None)
    jobs = _number(told.config.get("max_u_jobs", ""))
    # At the soft limit a program is sent SIGUSR1, which ends it unless it listens.
    times = [told.of_queue(queue, name, "INFINITY") for name in ("h_rt", "s_rt")]
    longest = min(
        (parse_duration(text, bare_is_s=True) for text in times if text != "INFINITY"), default=None
    )
    types = told.of_queue(queue, "qtype", "BATCH INTERACTIVE").split()
    return Partition(
        name=queue,
        kinds=tuple(kind.name for kind in own),
        node_counts={
            kind.name: len(members) for kind, members in own.items() if len(members) != kind.count
        },
        takes_cpu_jobs=not any(told.complexes[name].requestable == "FORCED" for name in gpus),
        max_time=None if longest is None else length(longest),
        # Without an environment that spreads a job it stays on one host (sge_pe(5)).
        max_nodes=1 if all(one.rule == "one_node" for one in environments) else None,
        max_cores_per_node=max(slots, default=None),
        max_memory=mib_text(int(each) // 1024**2)
        if each is not None and memory.consumable == "JOB"
        else None,
        max_memory_per_cpu=mib_text(int(each) // 1024**2)
        if each is not None and memory.consumable != "JOB"
        else None,
        max_jobs=jobs or None,
        purpose="production" if "BATCH" in types or environments else "interactive",
        only_parallel="BATCH" not in types,
        accounts=listed(told.of_queue(queue, "projects")),
        denied_accounts=listed(told.of_queue(queue, "xprojects")),
        user_lists=listed(told.of_queue(queue, "user_lists")),
        denied_user_lists=listed(told.of_queue(queue, "xuser_lists")),
        parallel_environments=environments,
        source=f"GE qconf -sq {queue}, -sconf",
        unknown=("max_running_jobs", "billing"),
    )


def _environments(
    told: GridEngineAnswers, queue: str, kinds: Mapping[NodeKind, Sequence[Host]]
) -> tuple[ParallelEnvironment, ...]:
    """Return a queue's parallel environments; each host may have its own list of them."""
    lists = {
        kind.name: [listed(told.of_host(queue, "pe_list", host.name)) for host in hosts]
        for kind, hosts in kinds.items()
    }
    names = dict.fromkeys(name for own in lists.values() for one in own for name in one)
    found = []
    for name in names:
        on = tuple(kind for kind, own in lists.items() if all(name in one for one in own))
        if name in told.environments and on:
            every = len(on) == len(lists)
            found.append(_environment(name, told.environments[name], () if every else on))
    return tuple(found)


def _environment(name: str, settings: Settings, kinds: tuple[str, ...]) -> ParallelEnvironment:
    rule, slots = settings.get("allocation_rule", "$pe_slots"), settings.get("slots", "")
    return ParallelEnvironment(
        name=name,
        rule=_RULES.get(rule, "fixed"),
        cores_per_node=int(rule) if rule.isdecimal() else None,
        max_cores=int(slots) if slots.isdecimal() else None,
        kinds=kinds,
        user_lists=listed(settings.get("user_lists", "")),
        denied_user_lists=listed(settings.get("xuser_lists", "")),
    )


def _quota(
    told: GridEngineAnswers,
    gpus: Mapping[str, str],
    rule: QuotaText,
    kinds: Mapping[NodeKind, tuple[Host, ...]],
) -> Quota:
    queues, hosts = rule.filters.get("queues", ()), rule.filters.get("hosts", ())

    def matched(members: Sequence[Host]) -> int:
        return sum(_is_among(host.name, hosts, told.groups) for host in members)

    limits: dict[str, int] = {}
    unread: list[str] = []
    for name, text in rule.limits.items():
        number = _bytes(text)
        if number is None or name not in {"slots", _memory_of(told), *gpus}:
            unread.append(name)
        elif name == _memory_of(told):
            limits["memory"] = int(number) // 1024**2
        else:
            limits["cores" if name == "slots" else f"gpu:{gpus[name]}"] = int(number)
    return Quota(
        name=rule.name,
        users=rule.filters.get("users", ()),
        projects=rule.filters.get("projects", ()),
        environments=rule.filters.get("pes", ()),
        partitions=tuple(name for name in told.queues if _is_among(name, queues, {})),
        kinds=tuple(kind.name for kind, own in kinds.items() if matched(own) == len(own)),
        kinds_in_part=tuple(
            kind.name for kind, own in kinds.items() if 0 < matched(own) < len(own)
        ),
        per_node="hosts" in rule.each,
        limits=limits,
        unread=tuple(unread),
        source=f"GE qconf -srqs {rule.name}",
    )


def _is_among(name: str, words: Sequence[str], groups: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a list of a quota's has a name: `!` takes out, `*` is all."""

    def has(word: str) -> bool:
        return word == "*" or name in groups.get(word, (word,))

    wanted = [word for word in words if not word.startswith("!")]
    unwanted = [word[1:] for word in words if word.startswith("!")]
    return (not wanted or any(map(has, wanted))) and not any(map(has, unwanted))


def _needs_project(told: GridEngineAnswers) -> bool:
    return told.config.get("enforce_project", "false").lower() == "true"


def _dialect(told: GridEngineAnswers, gpus: Mapping[str, str]) -> Dialect:
    memory = told.complexes.get(_memory_of(told), _NOTHING)
    name, gpu_type = next(iter(gpus.items()), ("gpu", "gpu"))
    counted = memory.consumable != "NO"
    # What is not set aside is still a limit, of each slot.
    unit: Literal["core", "node", "none"] = "core" if memory.requestable != "NO" else "none"
    each = _bytes(memory.default) if memory.consumable == "YES" else None
    return Dialect(
        gpus=f"-l {name.removesuffix(gpu_type)}{{type}}={{count}}",
        partition="optional",
        memory="node" if memory.consumable == "JOB" else unit,
        memory_option="" if _memory_of(told) == "h_vmem" else f"-l {_memory_of(told)}={{memory}}",
        memory_is_counted=True if counted else None,
        default_memory_per_core=mib_text(int(each) // 1024**2) if each else None,
        time_required=told.complexes.get("h_rt", _NOTHING).requestable == "FORCED",
        source="GE qconf -sc, -sp; qsub(1)",
    )


def _notes(told: GridEngineAnswers) -> Iterator[str]:
    """Yield what Grid Engine does not report, one sentence each."""
    yield (
        "Grid Engine does not report these facts, so this file lacks them: what a GPU-hour costs, "
        "the fair share of a GPU, its memory and product name, how software is loaded, who runs "
        "the cluster. GPUs are the consumables whose names say so; the vendor is taken from the "
        "type."
    )
    yield "hosts names only this machine; a pattern such as login* recognises all of them."
    if told.config.get("jsv_url", "none").lower() != "none":
        yield (
            "A verifier (jsv_url) may change or refuse a job by rules of the site's own; Grid "
            "Engine does not report them."
        )
