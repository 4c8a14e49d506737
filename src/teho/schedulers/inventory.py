"""Functions for the inventories of all schedulers: questions, GPU types, node kinds, times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from teho.errors import RefusedError, SchedulerError
from teho.model.cluster import Gpu, NodeKind, OtherGpus
from teho.patterns import lazy_pattern
from teho.schedulers.command import Completed, message_of
from teho.units import mib_text

__all__ = [
    "HOSTS_NOTE",
    "PATIENCE_S",
    "UNTYPED",
    "Ask",
    "Host",
    "answer_now",
    "answer_of",
    "gpu_of",
    "is_product",
    "kinds_in",
    "kinds_of",
    "length",
    "size_gib",
]

_SLICE = lazy_pattern(
    r"(?:(?P<whole>.*?)[_.-])?(?:mig[_.-]?)?[1-8]g(?:\.(?P<gib>\d+)gb)?(?:\+.*)?", re.IGNORECASE
)
_WHOLE = lazy_pattern(
    r"(?:nvidia[_-])?(?:tesla[_-]|geforce[_-]|quadro[_-])?"
    r"(?:[kp]\d{2,4}|v100\w*|t4|[ab]\d{2,4}\w*|g?h\d{2,3}\w*|gb\d{2,3}\w*|l4|l40\w*|rtx\w*|gtx\w*|titan\w*)"
    r"(?:[_-](?:sxm\d?|pcie|nvl|\d+gb?|hbm\w*|ti|super|ada|pro|\d{4}\w*)*)*",
    re.IGNORECASE,
)
"""Names of whole products. Any other name may be a slice."""
_AMD = lazy_pattern(r"mi\d{2,3}|amd|gfx\d+|radeon|instinct", re.IGNORECASE)
_LENGTHS = ((86400, "d"), (3600, "h"), (60, "min"))
_TIMEOUT_S = 60.0
"""A busy scheduler needs time to list thousands of nodes."""

PATIENCE_S = 5.0
"""A user waits for a plan. Answers that come later are not used."""
UNTYPED = "gpu"
"""Type of GPUs if the scheduler has no name for it."""
HOSTS_NOTE = (
    "The list `hosts` has only this machine. A pattern such as `login*` matches all login nodes."
)


class Ask(Protocol):
    """Runs a command that only asks, so it may be repeated."""

    def __call__(self, argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        """Run the command; raises a TehoError if it does not exist or does not end in time."""


def answer_now(ask: Ask, *argv: str) -> str | None:
    """Ask while a user waits for a plan. None: no answer in time, or the scheduler refused."""
    try:
        done = ask(argv, timeout_s=PATIENCE_S, repeat=False)
    except SchedulerError:
        return None
    return None if done.exit_code else done.stdout


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    name: str
    cores: int
    usable_cores: int
    reserved_cores: tuple[int, ...] = ()
    cpus_per_core: int = 1
    """Number of CPUs that the scheduler counts for a core."""
    sockets: int | None = None
    memory_mib: int | None = None
    memory_is_named: bool = True
    local_disk_gib: float | None = None
    gpus: tuple[tuple[str, int], ...] = ()
    """Types, each with its count."""
    arch: str = "x86_64"
    features: frozenset[str] = frozenset()
    partitions: tuple[str, ...] = ()


def answer_of(ask: Ask, *argv: str) -> str:
    """Ask a scheduler and return its answer.

    Raises:
        SchedulerError: the command does not exist, does not answer, or refuses.
    """
    answer = ask(argv, timeout_s=_TIMEOUT_S, repeat=True)
    if answer.exit_code:
        raise RefusedError(
            f"`{' '.join(argv)}` says: {' '.join(message_of(answer).split())}",
            next_step="ask again on a login node of the cluster",
        )
    return answer.stdout


def gpu_of(gpu_type: str, count: int | None) -> Gpu:
    """Return the GPUs of a node, with the facts that the name of their type contains.

    The vendor is AMD if the name shows it (`mi250`), else NVIDIA. The name of a slice (MIG) has
    the memory and the whole GPU: `a100_1g.5gb`, `h100_1g`. An unknown name may be a slice.
    """
    part = _SLICE.fullmatch(gpu_type)
    vendor: Literal["nvidia", "amd"] = "amd" if _AMD.match(gpu_type) else "nvidia"
    return Gpu(
        type=gpu_type,
        count=count,
        vendor=vendor,
        model=gpu_type,
        typed=gpu_type != UNTYPED,
        memory_gib=float(part["gib"]) if part and part["gib"] else None,
        part_of=(part["whole"] or "gpu") if part else "",
        may_be_slice=not (part or is_product(gpu_type)),
    )


def is_product(gpu_type: str) -> bool:
    """Return whether a name is a GPU model, not a slice."""
    return bool(_WHOLE.fullmatch(gpu_type) or _AMD.match(gpu_type) or gpu_type == UNTYPED)


def kinds_of(hosts: Sequence[Host], source: str) -> dict[NodeKind, tuple[Host, ...]]:
    """Group nodes with the same hardware, and return each kind with its nodes.

    A request names one GPU type, so a node with several types belongs to several kinds. Nodes that
    only differ in their features are of one kind: a job gets the same on each of them.
    """
    alike: dict[Host, list[Host]] = {}
    for host in hosts:
        bare = msgspec.structs.replace(host, name="", partitions=(), features=frozenset())
        alike.setdefault(bare, []).append(host)
    parts = [
        (members[0], members, frozenset.intersection(*(host.features for host in members)), gpu)
        for members in alike.values()
        for gpu in (members[0].gpus or (None,))
    ]
    names = _names([(host, gpu, features) for host, _, features, gpu in parts])
    found = {}
    for name, (host, members, features, gpu) in zip(names, parts, strict=True):
        kind = NodeKind(
            name=name,
            count=len({member.name for member in members}),
            cores=host.cores,
            usable_cores=host.usable_cores if host.usable_cores != host.cores else None,
            reserved_cores=host.reserved_cores,
            threads_per_core=host.cpus_per_core,
            sockets=host.sockets,
            memory=mib_text(host.memory_mib) if host.memory_mib else None,
            memory_is_named=host.memory_is_named,
            local_disk_gib=host.local_disk_gib,
            gpu=gpu_of(*gpu) if gpu else None,
            other_gpus=tuple(
                OtherGpus(type=name, count=count)
                for name, count in host.gpus
                if gpu and name != gpu[0]
            ),
            arch=host.arch,
            source=source,
            notes=_notes(host, features),
        )
        found[kind] = tuple(members)
    return found


def kinds_in(
    partition: str, kinds: Mapping[NodeKind, tuple[Host, ...]]
) -> dict[NodeKind, list[Host]]:
    """Return the kinds that a partition has, each with its nodes in the partition."""
    own = {
        kind: [host for host in members if partition in host.partitions]
        for kind, members in kinds.items()
    }
    return {kind: members for kind, members in own.items() if members}


def _notes(host: Host, features: frozenset[str]) -> str:
    notes = []
    if features:
        notes.append(f"Features: {', '.join(sorted(features))}.")
    if len(host.gpus) > 1:
        types = ", ".join(f"{count} × {gpu_type}" for gpu_type, count in host.gpus)
        notes.append(
            f"These nodes have several types of GPUs: {types}. This file has one node kind for "
            "each type; all of these node kinds contain the same nodes."
        )
    return " ".join(notes)


def _names(parts: list[tuple[Host, tuple[str, int] | None, frozenset[str]]]) -> list[str]:
    """Name each kind by its hardware, with as few words as needed for unique names."""
    forms = []
    for host, gpu, features in parts:
        memory = f"-{host.memory_mib / 1024:.0f}g" if host.memory_mib else ""
        base = gpu[0] if gpu else "cpu"
        count = f"-x{gpu[1]}" if gpu else ""
        cores = f"-{host.usable_cores}c"
        words = [base, count, memory, cores, *(f"-{feature}" for feature in sorted(features))]
        forms.append(["".join(words[: size + 1]) for size in range(len(words))])
    names: list[str] = []
    for own in forms:
        others = [form for other in forms if other is not own for form in other]
        name = next((form for form in own if form not in others), own[-1])
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def length(seconds: float) -> str:
    """Write a time limit as in the catalogue's files: `15min`, `36h`, `3d`."""
    whole = round(seconds)
    for size, unit in _LENGTHS:
        # 36 h, not 1.5 d; but 3 d, not 72 h.
        if whole % size == 0 and whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def size_gib(mib: float) -> float:
    """Return GiB from MiB, with two decimals."""
    return round(mib / 1024, 2)
