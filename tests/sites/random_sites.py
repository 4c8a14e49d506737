"""Random sites: nodes, partitions, QOS and associations that no catalogue has. Pure.

A site is drawn from a seed, always the same one. Its partitions, QOS and associations are
words of Slurm's own files, in dictionaries: whoever shrinks a site takes words out.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import msgspec

__all__ = [
    "GPU_MEMORY_GIB",
    "GROUP",
    "USER",
    "WHOLE",
    "Account",
    "Gpus",
    "Kind",
    "Part",
    "Qos",
    "Site",
    "draw_site",
    "minutes_of",
    "number_in",
]

USER = "games"
"""Who plans and submits: an ordinary user of every Debian, who has no password."""
GROUP = "games"

GPU_MEMORY_GIB: dict[str, tuple[float, float]] = {
    "h100": (80, 96),
    "a100": (40, 80),
    "v100": (16, 32),
    "l40s": (48, 48),
    "A100-SXM4-80GB": (80, 80),
    "rtx_a6000": (48, 48),
    "tesla_t4": (16, 16),
    "1g.10gb": (10, 10),
    "2g.20gb": (20, 20),
    "a100_3g.20gb": (20, 20),
    "h100_3g.40gb": (40, 40),
}
"""Least and most memory of a GPU, by its type's name; a name that is not here says nothing."""

_FULL = ("h100", "a100", "v100", "l40s", "A100-SXM4-80GB", "rtx_a6000", "tesla_t4", "blue")
WHOLE = frozenset({*_FULL, ""} - {"blue"})
"""Types of whole GPUs by their names; of those without a type nothing else is known."""
_SLICES = ("h100_1g", "1g.10gb", "2g.20gb", "a100_3g.20gb", "h100_3g.40gb", "small")
_MEMORY_MIB = (
    7800, 31900, 61500, 64000, 95000, 128000, 187392, 191845, 257500, 384000, 515000, 1031517,
)  # fmt: skip
_ENFORCE = (
    "", "associations", "associations,limits", "associations,limits,qos",
    "associations,limits,qos", "associations,limits,qos,safe",
)  # fmt: skip
_SELECT = (
    "CR_Core_Memory", "CR_Core_Memory", "CR_Core_Memory", "CR_CPU_Memory", "CR_CPU_Memory",
    "CR_Core_Memory,CR_ONE_TASK_PER_CORE", "CR_Core", "CR_CPU", "CR_Socket_Memory",
)  # fmt: skip


class Gpus(msgspec.Struct, frozen=True):
    """GPUs of one type in a node."""

    type: str
    """Empty: the site gives no type."""
    count: int


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are alike."""

    name: str
    count: int
    sockets: int
    cores: int
    """Of each socket."""
    threads: int = 1
    """Of each core."""
    only_cores: bool = False
    """Whether `CPUs` counts the cores, though they have two threads."""
    memory_mib: int
    disk_mib: int = 0
    gpus: tuple[Gpus, ...] = ()
    features: tuple[str, ...] = ()
    words: dict[str, str] = {}
    """More words of its line, such as `CoreSpecCount`."""
    drained: int = 0
    """The number of its nodes that are drained."""

    @property
    def all_cores(self) -> int:
        return self.sockets * self.cores

    @property
    def cpus(self) -> int:
        return self.all_cores * (1 if self.only_cores else self.threads)

    @property
    def cpus_per_core(self) -> int:
        return self.cpus // self.all_cores

    @property
    def all_gpus(self) -> int:
        return sum(gpus.count for gpus in self.gpus)

    def gpus_of(self, kind: str | None) -> int:
        """Return the number of GPUs of a type; None: of any."""
        return sum(gpus.count for gpus in self.gpus if kind in {None, gpus.type})


class Part(msgspec.Struct, frozen=True):
    """A partition."""

    name: str
    kinds: tuple[str, ...]
    words: dict[str, str] = {}


class Qos(msgspec.Struct, frozen=True):
    """A quality of service."""

    name: str
    words: dict[str, str] = {}


class Account(msgspec.Struct, frozen=True):
    """An account of the user's."""

    name: str
    words: dict[str, str] = {}
    """Limits of the account."""
    user_words: dict[str, str] = {}
    """Limits of the user's association with it."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A site."""

    seed: str
    words: dict[str, str]
    """Of the whole cluster."""
    kinds: tuple[Kind, ...]
    parts: tuple[Part, ...]
    qos: tuple[Qos, ...] = ()
    accounts: tuple[Account, ...]
    """The default one first."""

    def kind(self, name: str) -> Kind:
        return next(kind for kind in self.kinds if kind.name == name)

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def kinds_in(self, part: Part) -> list[Kind]:
        return [self.kind(name) for name in part.kinds]

    @property
    def tracked(self) -> tuple[str, ...]:
        """TRES of GPUs that the accounting counts."""
        return tuple(filter(None, self.words.get("AccountingStorageTRES", "").split(",")))


class _Draw(random.Random):
    """Draws for one site."""

    strictness = 1.0
    """What all chances of a limit are multiplied by: in a site full of limits few jobs fit."""


def draw_site(seed: str | int) -> Site:
    """Return the site of a seed."""
    draw = _Draw(f"site {seed}")
    draw.strictness = draw.choice((0.25, 0.5, 0.5, 1.0))
    kinds = tuple(_kind(draw, number) for number in range(draw.choice((1, 2, 2, 3, 4))))
    words = _general(draw, kinds)
    if "Socket" in words["SelectTypeParameters"]:
        for kind in kinds:  # slurmctld does not start with both
            kind.words.pop("CoreSpecCount", None)
    tracked = tuple(filter(None, words.get("AccountingStorageTRES", "").split(",")))
    uses_qos = "qos" in words.get("AccountingStorageEnforce", "")
    count = draw.choice((1, 2, 3)) if uses_qos else draw.choice((0, 0, 1))
    qos = tuple(_qos(draw, name, kinds, tracked) for name in ("long", "debug", "gpu")[:count])
    accounts = _accounts(draw, kinds, tracked, qos)
    parts = _parts(draw, kinds, tracked, qos, accounts)
    return Site(seed=str(seed), words=words, kinds=kinds, parts=parts, qos=qos, accounts=accounts)


def minutes_of(text: str) -> float | None:
    """Return a time of Slurm's files in minutes; None: without end, or no time."""
    days, _, rest = text.rpartition("-")
    numbers = rest.split(":")
    if not all(number.isdigit() for number in [*numbers, days or "0"]):
        return None
    if days:
        hours, minutes = [*map(int, numbers), 0][:2]
        return int(days) * 1440 + hours * 60 + minutes
    if len(numbers) == 1:
        return int(numbers[0])
    if len(numbers) == 2:
        return int(numbers[0])
    return int(numbers[0]) * 60 + int(numbers[1])


def number_in(words: Mapping[str, str], option: str, what: str = "") -> int | None:
    """Return the number of an option, or of one of its TRES; None where there is none."""
    text = words.get(option, "")
    if what:
        pairs = dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
        text = pairs.get(what, "")
    text = text.removesuffix("M")
    return int(text) if text.isdigit() else None


def _sometimes(draw: _Draw, chance: float) -> bool:
    return draw.random() < chance * draw.strictness


def _kind(draw: _Draw, number: int) -> Kind:
    threads = draw.choice((1, 1, 2))
    sockets, cores = draw.choice(((1, 4), (1, 24), (2, 8), (2, 20), (2, 32), (2, 64), (4, 6)))
    gpus = _gpus(draw)
    words = {}
    if _sometimes(draw, 0.15):
        words["CoreSpecCount"] = str(draw.choice((1, 2)) if sockets * cores > 4 else 1)
    if _sometimes(draw, 0.15):
        words["MemSpecLimit"] = str(draw.choice((1024, 2000, 4096)))
    count = draw.choice((1, 1, 2, 3, 4, 8))
    features = ("ib", "big", "zen3", "cascade")
    return Kind(
        name=f"{'g' if gpus else 'c'}{number + 1}",
        count=count,
        sockets=sockets,
        cores=cores,
        threads=threads,
        only_cores=threads == 2 and _sometimes(draw, 0.2),
        memory_mib=draw.choice(_MEMORY_MIB),
        disk_mib=draw.choice((0, 0, 95000, 900000)),
        gpus=gpus,
        features=tuple(draw.sample(features, draw.choice((0, 0, 1, 2)))),
        words=words,
        drained=draw.randint(1, count) if _sometimes(draw, 0.12) else 0,
    )


def _gpus(draw: _Draw) -> tuple[Gpus, ...]:
    shapes = ("none", "typed", "untyped", "slices", "mixed", "partly")
    shape = draw.choices(shapes, (4, 6, 2, 2, 2, 1))
    count = draw.choice((1, 2, 3, 4, 4, 6, 8))
    match shape[0]:
        case "none":
            return ()
        case "untyped":
            return (Gpus("", count),)
        case "slices":
            return (Gpus(draw.choice(_SLICES), draw.choice((2, 4, 7, 14))),)
        case "mixed":
            one, other = draw.sample(_FULL, 2)
            return (Gpus(one, count), Gpus(other, draw.choice((1, 2))))
        case "partly":
            return (Gpus("a100", max(1, count // 2)), Gpus(draw.choice(_SLICES), 7))
    return (Gpus(draw.choice(_FULL), count),)


def _general(draw: _Draw, kinds: Iterable[Kind]) -> dict[str, str]:
    types = sorted({gpus.type for kind in kinds for gpus in kind.gpus if gpus.type})
    words = {
        "SelectTypeParameters": draw.choice(_SELECT),
        "EnforcePartLimits": draw.choice(("ALL", "ALL", "ANY", "NO")),
        "AccountingStorageEnforce": draw.choice(_ENFORCE),
        "AccountingStorageTRES": "gres/gpu",
    }
    if types and draw.random() < 0.5:
        words["AccountingStorageTRES"] += "".join(f",gres/gpu:{name}" for name in types)
    elif _sometimes(draw, 0.15):
        words["AccountingStorageTRES"] = ""
    if _sometimes(draw, 0.35):
        words["PriorityFlags"] = "MAX_TRES"
    if _sometimes(draw, 0.4):
        words["DefMemPerCPU"] = draw.choice(("1000", "2048", "4000"))
    elif _sometimes(draw, 0.15):
        words["DefMemPerNode"] = draw.choice(("2048", "16000"))
    if _sometimes(draw, 0.1):
        words["MaxMemPerCPU"] = draw.choice(("4000", "8000"))
    if _sometimes(draw, 0.1):
        option, value = draw.choice((("DefCpuPerGPU", "4"), ("DefMemPerGPU", "16000")))
        words[option] = value
    if _sometimes(draw, 0.15):
        words["PrivateData"] = "cloud,accounts,jobs,usage,users"
    return words


def _tres(draw: _Draw, kinds: Iterable[Kind], tracked: Iterable[str]) -> str:
    """Return one or two limits, such as `cpu=64,gres/gpu=2`, from one GPU to several nodes."""
    kinds, tracked = list(kinds), list(tracked)
    kind = draw.choice(kinds)
    choices = [f"cpu={draw.choice((1, 8, kind.cpus, kind.cpus + 1, 2 * kind.cpus))}", "node=2"]
    choices.append(f"mem={draw.choice((8000, 61500, kind.memory_mib, 2 * kind.memory_mib))}M")
    choices += [f"{name}={draw.choice((1, 2, 4, 6))}" for name in tracked] * 2
    found = {text.split("=")[0]: text for text in draw.sample(choices, draw.choice((1, 1, 2)))}
    return ",".join(found.values())


def _qos(draw: _Draw, name: str, kinds: tuple[Kind, ...], tracked: tuple[str, ...]) -> Qos:
    words = {}
    for option, chance in (
        ("MaxTRES", 0.4), ("MaxTRESPerNode", 0.15), ("MaxTRESPerUser", 0.25), ("GrpTRES", 0.2),
    ):  # fmt: skip
        if _sometimes(draw, chance):
            words[option] = _tres(draw, kinds, tracked)
    if _sometimes(draw, 0.2):
        counted = [*tracked, "cpu"]
        words["MinTRESPerJob"] = f"{draw.choice(counted)}={draw.choice((1, 2, 4))}"
    if _sometimes(draw, 0.4):
        words["MaxWall"] = draw.choice(("30", "2:00:00", "1-00:00:00", "3-00:00:00"))
    if _sometimes(draw, 0.3):
        words["MaxJobsPerUser"] = draw.choice(("1", "4"))
    flags = ["DenyOnLimit"] * _sometimes(draw, 0.6) + ["OverPartQOS"] * _sometimes(draw, 0.2)
    flags += ["PartitionTimeLimit"] * _sometimes(draw, 0.1)
    if flags:
        words["Flags"] = ",".join(flags)
    return Qos(name, words)


def _accounts(
    draw: _Draw, kinds: tuple[Kind, ...], tracked: tuple[str, ...], qos: tuple[Qos, ...]
) -> tuple[Account, ...]:
    names = draw.sample(("proj_a", "def-lab", "chem"), draw.choice((1, 1, 2, 3)))
    found = []
    for name in names:
        words: dict[str, str] = {}
        user_words: dict[str, str] = {}
        if _sometimes(draw, 0.1):
            words["GrpTRES"] = _tres(draw, kinds, tracked)
        for option, chance in (("MaxTRES", 0.12), ("GrpTRES", 0.08)):
            if _sometimes(draw, chance):
                user_words[option] = _tres(draw, kinds, tracked)
        if _sometimes(draw, 0.1):
            user_words["MaxWall"] = draw.choice(("60", "12:00:00"))
        if qos and _sometimes(draw, 0.5):
            own = draw.sample([one.name for one in qos], draw.randint(1, len(qos)))
            user_words["QOS"] = ",".join(["normal", *own])
            if _sometimes(draw, 0.5):
                user_words["DefaultQOS"] = draw.choice(own)
        found.append(Account(name, words, user_words))
    return tuple(found)


def _parts(
    draw: _Draw,
    kinds: tuple[Kind, ...],
    tracked: tuple[str, ...],
    qos: tuple[Qos, ...],
    accounts: tuple[Account, ...],
) -> tuple[Part, ...]:
    names = draw.sample(("main", "gpu", "short", "batch", "shared"), draw.choice((1, 2, 2, 3, 4)))
    found = []
    for name in names:
        own = draw.sample(kinds, draw.randint(1, len(kinds)))
        held = tuple(sorted(kind.name for kind in own))
        words = _limits(draw, own, tracked) | _rights(draw, qos, accounts)
        found.append(Part(name, held, words))
    if draw.random() < 0.7:
        chosen = draw.randrange(len(found))
        found[chosen].words["Default"] = "YES"
    return tuple(found)


def _limits(draw: _Draw, kinds: list[Kind], tracked: tuple[str, ...]) -> dict[str, str]:
    kind = draw.choice(kinds)
    words = {}
    times = ("30", "2:00:00", "12:00:00", "1-00:00:00", "3-00:00:00", "UNLIMITED")
    chances = {
        "MaxTime": (1.0, times),
        "DefaultTime": (0.3, ("10", "30")),
        "MaxNodes": (0.3, ("1", "2", "4")),
        "MinNodes": (0.1, ("2", "3")),
        "MaxCPUsPerNode": (0.15, tuple(map(str, (kind.cpus // 2, kind.cpus - 1, 6)))),
        "OverSubscribe": (0.2, ("EXCLUSIVE", "EXCLUSIVE", "YES:2", "FORCE:2")),
    }
    for option, (chance, values) in chances.items():
        if _sometimes(draw, chance):
            words[option] = draw.choice(values)
    if _sometimes(draw, 0.15):
        words["MaxMemPerNode"] = str(draw.choice((8000, 30750, kind.memory_mib // 2)))
    elif _sometimes(draw, 0.15):
        words["MaxMemPerCPU"] = draw.choice(("2000", "4000", "7500"))
    if _sometimes(draw, 0.25):
        words["DefMemPerCPU"] = draw.choice(("1000", "1900", "3000"))
    if any(kind.gpus for kind in kinds):
        if _sometimes(draw, 0.25):
            words["DefCpuPerGPU"] = draw.choice(("1", "4", "8", "16"))
        if _sometimes(draw, 0.2):
            words["DefMemPerGPU"] = draw.choice(("8000", "30000", "61500"))
    if draw.random() < 0.5:
        weights = [f"CPU={draw.choice(('1.0', '0.5', '2'))}"]
        weights += [f"Mem={draw.choice(('0.25G', '0.1G', '0.0005'))}"] * _sometimes(draw, 0.6)
        weights += [
            f"GRES{name.removeprefix('gres')}={draw.choice((4, 16, 60))}"
            for name in tracked
            if draw.random() < 0.8
        ]
        words["TRESBillingWeights"] = ",".join(weights)
    return words


def _rights(draw: _Draw, qos: tuple[Qos, ...], accounts: tuple[Account, ...]) -> dict[str, str]:
    words = {}
    if _sometimes(draw, 0.08):
        words["Hidden"] = "YES"
    if _sometimes(draw, 0.12):
        words["State"] = draw.choice(("DOWN", "DRAIN", "INACTIVE"))
    if _sometimes(draw, 0.05):
        words["ReqResv"] = "YES"
    if _sometimes(draw, 0.1):
        words["AllowGroups"] = draw.choice((GROUP, "staff", f"staff,{GROUP}"))
    names = [account.name for account in accounts]
    if _sometimes(draw, 0.12):
        words["AllowAccounts"] = draw.choice((*names, "physics"))
    elif _sometimes(draw, 0.1):
        words["DenyAccounts"] = draw.choice((*names, "physics"))
    if qos:
        if _sometimes(draw, 0.35):
            words["QOS"] = draw.choice(qos).name
        if _sometimes(draw, 0.12):
            words["AllowQos"] = draw.choice((*(one.name for one in qos), "normal"))
        elif _sometimes(draw, 0.08):
            words["DenyQos"] = draw.choice((*(one.name for one in qos), "normal"))
    return words
