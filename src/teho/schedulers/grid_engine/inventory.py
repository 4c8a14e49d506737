"""Read a cluster's facts from its Grid Engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec

from teho.errors import InputError, UnitError
from teho.model.cluster import (
    UNKNOWN_SITE,
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
from teho.patterns import lazy_pattern
from teho.schedulers.grid_engine.answers import (
    Complex,
    GridEngineAnswers,
    QuotaText,
    Settings,
    answers_of,
    listed,
)
from teho.schedulers.inventory import HOSTS_NOTE, Ask, Host, is_product, kinds_in, kinds_of, length
from teho.units import least, mib_text, parse_bytes, parse_duration

__all__ = ["grid_engine_cluster"]

_ARCHES = {"lx-amd64": "x86_64", "lx-arm64": "aarch64", "lx-ppc64le": "ppc64le"}
_GPU = lazy_pattern(r"gpu|cuda|coproc|nvidia|tesla|geforce|radeon|instinct", re.IGNORECASE)
_PREFIX = lazy_pattern(r"(?:coproc|gpu|cuda|nvidia)[_.-]", re.IGNORECASE)
_GENERAL = lazy_pattern(
    r"(?:n|num_?)?(?:gpu|cuda|coproc)s?(?:_(?:cards?|devs?|devices?))?", re.IGNORECASE
)
"""Names that mean any GPU, without a type."""
_NO_COMPLEX = Complex("", "YES", "NO", "0")
_RULES: dict[str, Literal["one_node", "fill", "spread"]] = {
    "$pe_slots": "one_node",
    "$fill_up": "fill",
    "$round_robin": "spread",
}
_MEMORIES = ("h_vmem", "mem_free", "virtual_free", "h_rss", "s_vmem")
"""Attributes by which sites count memory, the most usual first."""


def grid_engine_cluster(
    ask: Ask, *, environment: Mapping[str, str], host: str, today: date, name: str = ""
) -> Cluster:
    """Ask Grid Engine for the cluster's hosts, queues and limits.

    Facts that Grid Engine does not report are left out. Each partition's `unknown` and the
    cluster's notes name them. A queue is a partition. If a host and a queue both have a limit, the
    smaller one counts (queue_conf(5), host_conf(5), complex(5)).

    Args:
        ask: runs a command that only asks.
        environment: variables of this session, for `SGE_CLUSTER_NAME`.
        host: name of this machine, which identifies the cluster.
        today: date of the facts.
        name: name of the cluster; empty: `SGE_CLUSTER_NAME`.

    Raises:
        InputError: the cluster has no name.
        SchedulerError: Grid Engine does not answer.
    """
    answers = answers_of(ask)
    cluster_name = environment.get("SGE_CLUSTER_NAME", "")
    if not name and not cluster_name:
        raise InputError(
            "Grid Engine does not report the name of this cluster (SGE_CLUSTER_NAME)",
            next_step="`teho clusters discover --name NAME`",
        )
    site = _Site(answers)
    return Cluster(
        name=(name or cluster_name).lower(),
        title=cluster_name or name,
        site=UNKNOWN_SITE,
        scheduler="grid_engine",
        status="active",
        verified_on=today,
        hosts=(host,),
        recognised_by={"SGE_CLUSTER_NAME": cluster_name} if cluster_name else {},
        sources={"GE": Source(document=f"Grid Engine {answers.version} on {host}", read_on=today)},
        nodes=tuple(site.kinds),
        partitions=tuple(site.partition(queue) for queue in answers.queues),
        dialect=site.dialect(),
        account=Account(
            required=answers.config.get("enforce_project", "false").lower() == "true",
            option="-P",
            example="project",
            source="GE qconf -sconf: enforce_project",
        ),
        local_disk=LocalDisk(
            variable="TMPDIR",
            source="GE queue_conf(5): tmpdir",
            notes="Grid Engine makes this directory for the job and removes it afterwards; its "
            "size is not known.",
        ),
        quotas=tuple(site.quota(rule) for rule in answers.quotas),
        notes=tuple(_notes(answers)),
    )


class _Site:
    """The answers, with the meaning of their names: which attributes are GPUs and memory."""

    def __init__(self, answers: GridEngineAnswers) -> None:
        self.answers = answers
        self.gpus = _gpu_types(answers)
        """Consumables that are GPUs, each with the GPU's type."""
        self.memory_name = _memory_name(answers)
        """Attribute by which jobs request memory."""
        self.memory = answers.complexes.get(self.memory_name, _NO_COMPLEX)
        places = [
            self.host(queue, host) for queue in answers.queues for host in answers.hosts_of(queue)
        ]
        by_slot = {
            gpu_type
            for name, gpu_type in self.gpus.items()
            if answers.complexes[name].consumable == "YES"
        }
        self.kinds = {
            _with_gpu_facts(kind, by_slot): members
            for kind, members in kinds_of(places, "GE qconf -se, -sq").items()
        }

    def host(self, queue: str, host: str) -> Host:
        """Return the resources that a queue has on one host."""
        answers = self.answers
        limits = [
            _pairs(answers.hosts[host].get("complex_values", "")),
            _pairs(answers.of_host(queue, "complex_values", host)),
        ]
        loads = _pairs(answers.hosts[host].get("load_values", ""))
        slots = int(answers.of_host(queue, "slots", host, "0") or 0)
        most = _smallest("slots", limits)
        slots = slots if most is None else min(slots, int(most))
        cores = max(_number(loads.get("m_core", loads.get("num_proc", ""))), slots, 1)
        # The load value of an attribute counts too, if it is smaller (complex(5), consumables).
        memory = _smallest(self.memory_name, [*limits, loads])
        named = memory is not None or self.memory_name in answers.queues[queue]
        if memory is None:
            memory = _bytes(loads.get("mem_total", ""))
        arch = loads.get("arch", "")
        return Host(
            name=host,
            cores=cores,
            usable_cores=slots or cores,
            sockets=_number(loads.get("m_socket", "")) or None,
            memory_mib=int(memory) // 1024**2 if memory else None,
            memory_is_named=named,
            gpus=tuple(
                (gpu_type, int(found))
                for name, gpu_type in self.gpus.items()
                if (found := _smallest(name, limits))
            ),
            arch=_ARCHES.get(arch, arch or "x86_64"),
            partitions=(queue,),
        )

    def partition(self, queue: str) -> Partition:
        """Return a queue as a partition."""
        answers, of_queue = self.answers, self.answers.of_queue
        own = kinds_in(queue, self.kinds)
        environments = _environments(answers, queue, own)
        limits = (
            _bytes(of_queue(queue, name, "INFINITY")) for name in {self.memory_name, "h_vmem"}
        )
        memory = _mib_text(least(*limits))
        # At the soft limit, a program gets SIGUSR1, which ends it unless it handles the signal.
        times = [of_queue(queue, name, "INFINITY") for name in ("h_rt", "s_rt")]
        longest = min(
            (parse_duration(text, bare_is_s=True) for text in times if text != "INFINITY"),
            default=None,
        )
        types = of_queue(queue, "qtype", "BATCH INTERACTIVE").split()
        is_of_job = self.memory.consumable == "JOB"
        forced = any(answers.complexes[name].requestable == "FORCED" for name in self.gpus)
        return Partition(
            name=queue,
            kinds=tuple(kind.name for kind in own),
            node_counts={
                kind.name: len(members)
                for kind, members in own.items()
                if len(members) != kind.count
            },
            takes_cpu_jobs=not forced,
            max_time=None if longest is None else length(longest),
            # Without an environment that uses several hosts, a job stays on one (sge_pe(5)).
            max_nodes=1 if all(one.rule == "one_node" for one in environments) else None,
            max_cores_per_node=max(
                (host.usable_cores for members in own.values() for host in members), default=None
            ),
            max_memory=memory if is_of_job else None,
            max_memory_per_cpu=None if is_of_job else memory,
            max_jobs=_number(answers.config.get("max_u_jobs", "")) or None,
            purpose="production" if "BATCH" in types or environments else "interactive",
            only_parallel="BATCH" not in types,
            accounts=listed(of_queue(queue, "projects")),
            denied_accounts=listed(of_queue(queue, "xprojects")),
            user_lists=listed(of_queue(queue, "user_lists")),
            denied_user_lists=listed(of_queue(queue, "xuser_lists")),
            parallel_environments=environments,
            source=f"GE qconf -sq {queue}, -sconf",
            unknown=("max_running_jobs", "billing"),
        )

    def quota(self, rule: QuotaText) -> Quota:
        """Return a rule of the resource quotas."""
        queues, hosts = rule.filters.get("queues", ()), rule.filters.get("hosts", ())
        matched = {
            kind.name: [_is_among(host.name, hosts, self.answers.groups) for host in members]
            for kind, members in self.kinds.items()
        }
        limits: dict[str, int] = {}
        unread: list[str] = []
        for name, text in rule.limits.items():
            number = _bytes(text)
            if number is None or name not in {"slots", self.memory_name, *self.gpus}:
                unread.append(name)
            elif name == self.memory_name:
                limits["memory"] = int(number) // 1024**2
            else:
                limits["cores" if name == "slots" else f"gpu:{self.gpus[name]}"] = int(number)
        return Quota(
            name=rule.name,
            users=rule.filters.get("users", ()),
            projects=rule.filters.get("projects", ()),
            environments=rule.filters.get("pes", ()),
            partitions=tuple(one for one in self.answers.queues if _is_among(one, queues, {})),
            kinds=tuple(name for name, nodes in matched.items() if all(nodes)),
            kinds_in_part=tuple(
                name for name, nodes in matched.items() if any(nodes) and not all(nodes)
            ),
            per_node="hosts" in rule.each,
            limits=limits,
            unread=tuple(unread),
            source=f"GE qconf -srqs {rule.name}",
        )

    def dialect(self) -> Dialect:
        """Return how requests are written."""
        memory = self.memory
        name, gpu_type = next(iter(self.gpus.items()), ("gpu", "gpu"))
        # An attribute that is not reserved is still a limit for each slot.
        unit: Literal["core", "node", "none"] = "core" if memory.requestable != "NO" else "none"
        each = _bytes(memory.default) if memory.consumable == "YES" else None
        is_usual = self.memory_name == "h_vmem"
        return Dialect(
            gpus=f"-l {name.removesuffix(gpu_type)}{{type}}={{count}}",
            partition="optional",
            memory="node" if memory.consumable == "JOB" else unit,
            memory_option="" if is_usual else f"-l {self.memory_name}={{memory}}",
            memory_is_counted=True if memory.consumable != "NO" else None,
            default_memory_per_core=_mib_text(each) if each else None,
            time_required=self.answers.complexes.get("h_rt", _NO_COMPLEX).requestable == "FORCED",
            source="GE qconf -sc, -sp; qsub(1)",
        )


def _gpu_types(answers: GridEngineAnswers) -> dict[str, str]:
    """Return the consumables that are GPUs, each with the GPU's type.

    The type is the name without the prefix that all of them share, such as `v100` of
    `coproc_v100`.
    """
    names = [
        name
        for name, one in answers.complexes.items()
        if one.consumable != "NO" and one.type in {"INT", "DOUBLE", "RSMAP"}
        if (_GPU.search(name) or is_product(name)) and "mem" not in name
    ]
    prefixes = {match[0] if (match := _PREFIX.match(name)) else "" for name in names}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    return {name: name.removeprefix(prefix) for name in names}


def _with_gpu_facts(kind: NodeKind, by_slot: set[str]) -> NodeKind:
    """Return a kind with the facts about GPUs that only Grid Engine has."""
    if kind.gpu is None:
        return kind
    gpu = msgspec.structs.replace(
        kind.gpu,
        per_slot=kind.gpu.type in by_slot,
        may_be_slice=kind.gpu.may_be_slice and not _GENERAL.fullmatch(kind.gpu.type),
    )
    return msgspec.structs.replace(kind, gpu=gpu)


def _memory_name(answers: GridEngineAnswers) -> str:
    """Return the attribute for memory: one that jobs must request, else one that is reserved."""
    counted = [
        name
        for name, one in answers.complexes.items()
        if one.type == "MEMORY" and one.consumable != "NO" and one.requestable != "NO"
    ]
    ranks = {name: place for place, name in enumerate(_MEMORIES)}
    wanted = [name for name in counted if answers.complexes[name].requestable == "FORCED"]
    return min(
        (name for name in wanted or counted if name in ranks or not _GPU.search(name)),
        key=lambda name: ranks.get(name, len(ranks)),
        default=_MEMORIES[0],
    )


def _pairs(text: str) -> Settings:
    items = (item.strip().partition("=") for item in text.split(",") if "=" in item)
    return {key: value for key, _, value in items}


def _smallest(name: str, limits: Sequence[Settings]) -> float | None:
    return least(*(_bytes(limit[name]) for limit in limits if name in limit))


def _bytes(text: str) -> float | None:
    """Read a number or an amount of memory; None: neither, such as `INFINITY`."""
    try:
        # A map of resources such as `2(0 1)` lists the resources after their number.
        return parse_bytes(text.partition("(")[0])
    except UnitError:
        return None


def _mib_text(amount_bytes: float | None) -> str | None:
    return None if amount_bytes is None else mib_text(int(amount_bytes) // 1024**2)


def _number(text: str) -> int:
    return int(float(text)) if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) else 0


def _environments(
    answers: GridEngineAnswers, queue: str, kinds: Mapping[NodeKind, Sequence[Host]]
) -> tuple[ParallelEnvironment, ...]:
    """Return a queue's parallel environments. Each host may have another list of them."""
    lists = {
        kind.name: [listed(answers.of_host(queue, "pe_list", host.name)) for host in hosts]
        for kind, hosts in kinds.items()
    }
    names = dict.fromkeys(name for own in lists.values() for one in own for name in one)
    found = []
    for name in names:
        on = tuple(kind for kind, own in lists.items() if all(name in one for one in own))
        if name in answers.environments and on:
            every = len(on) == len(lists)
            found.append(_environment(name, answers.environments[name], () if every else on))
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


def _is_among(name: str, words: Sequence[str], groups: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a quota's list contains a name. `!` excludes a name, `*` means all."""

    def has(word: str) -> bool:
        return word == "*" or name in groups.get(word, (word,))

    wanted = [word for word in words if not word.startswith("!")]
    unwanted = [word[1:] for word in words if word.startswith("!")]
    return (not wanted or any(map(has, wanted))) and not any(map(has, unwanted))


def _notes(answers: GridEngineAnswers) -> Iterator[str]:
    """Yield a sentence for each fact that Grid Engine does not report."""
    yield (
        "Grid Engine does not report these facts, so this file does not have them: what a "
        "GPU-hour costs, how many cores and how much memory belong to one GPU, the memory and the "
        "product name of the GPU, how software is loaded, who runs the cluster. If the name of a "
        "consumable is typical of GPUs, such as gpu or v100, Teho counts the consumable as a GPU. "
        "The vendor is taken from the GPU type."
    )
    yield HOSTS_NOTE
    if answers.config.get("jsv_url", "none").lower() != "none":
        yield (
            "A verifier (jsv_url) may change or refuse a job by rules of the site; Grid Engine "
            "does not report these rules."
        )
