"""Random requests at and around a site's limits, and the scripts of one who knows Slurm. Pure.

The scripts are what a user would write by hand who knows the site's own files. They share
nothing with Teho's writer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec
from random_sites import GPU_MEMORY_GIB, WHOLE, Kind, Part, Site, minutes_of, number_in

from teho.model.request import Request

__all__ = ["ByHand", "by_hand", "draw_requests"]

_COMMAND = ("sleep", "20")
_LAUNCHERS: tuple[str, ...] = (
    "plain", "plain", "plain", "launch", "torchrun", "srun", "accelerate", "deepspeed", "horovod",
)  # fmt: skip
_OF_GPUS = ("launch", "srun", "horovod")
"""Launchers that have a task for each GPU."""
_MOST_SCRIPTS = 8


class ByHand(msgspec.Struct, frozen=True):
    """A script that asks for what a request says, in a partition."""

    text: str
    means: str = ""
    """What it says beyond the request, such as `--qos`."""


def draw_requests(site: Site, seed: str | int) -> Iterator[Request]:
    """Yield requests without end."""
    draw = random.Random(f"requests {site.seed} {seed}")
    while True:
        yield _request(draw, site)


def _request(draw: random.Random, site: Site) -> Request:
    part = draw.choice(site.parts)
    kind = draw.choice(site.kinds_in(part))
    numbers: dict[str, object] = {"gpus": 0}
    if kind.gpus and draw.random() < 0.9:
        numbers |= _of_gpus(draw, site, part, kind)
    else:
        numbers |= _of_cores(draw, site, part, kind)
    if draw.random() < 0.45:
        numbers["memory_mib"] = draw.choice(_memories(site, part, kind))
    if draw.random() < 0.7:
        numbers["time_s"] = 60.0 * draw.choice(_times(site, part))
    if draw.random() < 0.1:
        numbers["local_disk_gib"] = float(draw.choice((1, 50, max(1, kind.disk_mib // 1024), 2000)))
    if draw.random() < 0.6:
        numbers["partition"] = part.name
    accounts = [account.name for account in site.accounts]
    numbers["account"] = draw.choice([None, None, None, *accounts, *accounts])
    if draw.random() < 0.03:
        numbers["account"] = "nowhere"
    return Request(command=_COMMAND, launcher=draw.choice(_LAUNCHERS), **numbers)  # type: ignore[arg-type]


def _limits(site: Site, what: str) -> list[int]:
    """Return the numbers that QOS and associations have for a TRES."""
    places = [one.words for one in site.qos]
    places += [words for one in site.accounts for words in (one.words, one.user_words)]
    found = [number_in(words, option, what) for words in places for option in words]
    return [number for number in found if number]


def _around(*numbers: int | None) -> list[int]:
    return [n + more for n in numbers if n for more in (-1, 0, 1) if n + more > 0]


def _of_gpus(draw: random.Random, site: Site, part: Part, kind: Kind) -> dict[str, object]:
    gpus = draw.choice(kind.gpus)
    named = bool(gpus.type) and draw.random() < 0.5
    each = gpus.count if named else kind.all_gpus
    edges = _around(each, *_limits(site, "gres/gpu"), *_limits(site, f"gres/gpu:{gpus.type}"))
    edges += [each * kind.count, each * kind.count + 1, 2 * each, 3, 5]
    modest = draw.randint(1, each)
    found: dict[str, object] = {"gpus": modest if draw.random() < 0.5 else draw.choice(edges)}
    if named:
        found["gpu_type"] = gpus.type
    elif draw.random() < 0.08:
        found["gpu_type"] = draw.choice(("h100", "a100", "k80", "gpu"))
    if draw.random() < 0.12:
        least, most = GPU_MEMORY_GIB.get(gpus.type, (16, 40))
        found["gpu_memory_gib"] = float(draw.choice((8, least, most, most + 1)))
    if draw.random() < 0.3:
        most_nodes = number_in(part.words, "MaxNodes")
        nodes = draw.choice(_around(kind.count, most_nodes, number_in(part.words, "MinNodes"), 2))
        found["nodes"] = nodes
        if draw.random() < 0.7:
            found["gpus"] = nodes * draw.randint(1, each)
    if draw.random() < 0.35:
        fair = max(1, kind.all_cores // kind.all_gpus)
        found["cpus_per_gpu"] = draw.choice([1, *_around(fair), 2 * fair])
    elif draw.random() < 0.15:
        found["cpus"] = draw.choice(_cores(site, part, kind))
    return found


def _of_cores(draw: random.Random, site: Site, part: Part, kind: Kind) -> dict[str, object]:
    found: dict[str, object] = {}
    if draw.random() < 0.85:
        found["cpus"] = draw.choice(_cores(site, part, kind))
    if draw.random() < 0.3:
        most = number_in(part.words, "MaxNodes")
        found["nodes"] = draw.choice(_around(1, kind.count, most))
        if draw.random() < 0.6:
            cores = found.get("cpus", 1)
            found["cpus"] = found["nodes"] * (cores if isinstance(cores, int) else 1)  # type: ignore[operator]
    return found


def _cores(site: Site, part: Part, kind: Kind) -> list[int]:
    spare = number_in(kind.words, "CoreSpecCount") or 0
    most = number_in(part.words, "MaxCPUsPerNode")
    return [
        1,
        2,
        *_around(kind.all_cores, kind.all_cores - spare, most, *_limits(site, "cpu")),
        *([most // 2] if most and most > 1 else []),
        kind.cpus,
        kind.all_cores * kind.count,
        kind.all_cores * kind.count + 1,
    ]


def _memories(site: Site, part: Part, kind: Kind) -> list[int]:
    """Return sizes in MiB."""
    spare = number_in(kind.words, "MemSpecLimit") or 0
    found = [1000, 7000, kind.memory_mib // 2]
    found += _around(kind.memory_mib, kind.memory_mib - spare, *_limits(site, "mem"))
    found += _around(number_in(part.words, "MaxMemPerNode"))
    for words in (part.words, site.words):
        each = number_in(words, "MaxMemPerCPU")
        found += [each, each + 1, each * 2, each * kind.cpus] if each else []
    return found


def _times(site: Site, part: Part) -> list[int]:
    """Return times in minutes."""
    texts = [part.words.get("MaxTime", ""), *(one.words.get("MaxWall", "") for one in site.qos)]
    texts += [one.user_words.get("MaxWall", "") for one in site.accounts]
    known = [minutes_of(text) for text in texts if text]
    return [5, 60, *_around(*(int(minutes) for minutes in known if minutes))]


def by_hand(site: Site, part: Part, request: Request) -> list[ByHand]:
    """Return scripts that make a request in a partition; none: no way is known."""
    found = dict.fromkeys(
        text for kind in site.kinds_in(part) for text in _for_kind(site, part, kind, request)
    )
    plain = [ByHand(text) for text in found][:_MOST_SCRIPTS]
    more = []
    own = {name for one in site.accounts for name in one.user_words.get("QOS", "normal").split(",")}
    if plain and ("AllowQos" in part.words or "DenyQos" in part.words):
        for name in sorted(own):
            line = f"#SBATCH --qos={{qos:{name}}}"
            more += [ByHand(_with(one.text, line), "--qos") for one in plain[:3]]
    if plain and request.account is None and len(site.accounts) > 1:
        for account in site.accounts[1:]:
            line = f"#SBATCH --account={account.name}"
            more += [ByHand(_with(one.text, line), "--account") for one in plain[:2]]
    return plain + more


def _with(text: str, line: str) -> str:
    head, _, rest = text.partition("\n")
    return f"{head}\n{line}\n{rest}"


def _for_kind(site: Site, part: Part, kind: Kind, request: Request) -> Iterator[str]:
    if request.gpus and not _has(kind, request):
        return
    if request.gpus and request.gpu_type is None and _is_mixed(site, part):
        return  # GPUs without a type cannot be told from the others
    if request.local_disk_gib and request.local_disk_gib * 1024 > kind.disk_mib:
        return
    least = number_in(part.words, "MinNodes") or 1
    if request.gpus:
        each = kind.gpus_of(request.gpu_type)
        fewest = max(math.ceil(request.gpus / each), least)
        fitting = [n for n in range(fewest, request.gpus + 1) if request.gpus % n == 0][:3]
    else:
        fewest = max(math.ceil((request.cpus or 1) / kind.all_cores), least)
        # One process has no use for a second node.
        fitting = [fewest] if fewest == 1 or request.launcher != "plain" else []
    # Nodes that run no slurmd give away what is kept for the system; real ones do not.
    most = kind.all_cores - (number_in(kind.words, "CoreSpecCount") or 0)
    for nodes in [request.nodes] if request.nodes else fitting:
        if math.ceil((request.cpus or 0) / nodes) > most:
            continue
        if request.gpus % nodes:
            continue  # the plan names the next even number instead
        if (request.cpus_per_gpu or 0) * math.ceil(request.gpus / nodes) > most:
            continue
        yield _script(part, kind, request, nodes)


def _is_mixed(site: Site, part: Part) -> bool:
    types = {one.type for kind in site.kinds_in(part) for one in kind.gpus}
    return "" in types and len(types) > 1


def _has(kind: Kind, request: Request) -> bool:
    if not kind.gpus_of(request.gpu_type):
        return False
    types = [one.type for one in kind.gpus if request.gpu_type in {None, one.type}]
    one = request.gpus == 1 and request.gpu_memory_gib is not None
    if request.gpu_type is None and not one and any(name not in WHOLE for name in types):
        return False  # what is no whole GPU, or may be none, is meant by its name alone
    if request.gpu_memory_gib is None:
        return True
    return all(GPU_MEMORY_GIB.get(one, (0, 0))[0] >= request.gpu_memory_gib for one in types)


def _script(part: Part, kind: Kind, request: Request, nodes: int) -> str:
    even = request.gpus % nodes == 0
    gpus = request.gpus // nodes
    cores = math.ceil((request.cpus or 0) / nodes)
    if request.cpus_per_gpu:
        cores = request.cpus_per_gpu * math.ceil(request.gpus / nodes)
    tasks = gpus if request.gpus and even and request.launcher in _OF_GPUS else 1
    lines = [f"--partition={part.name}", f"--nodes={nodes}", f"--ntasks-per-node={tasks}"]
    if cores:
        lines.append(f"--cpus-per-task={math.ceil(cores / tasks) * kind.cpus_per_core}")
    if request.gpus:
        kind_of = f"{request.gpu_type}:" if request.gpu_type else ""
        lines.append(
            f"--gpus-per-node={kind_of}{gpus}" if even else f"--gpus={kind_of}{request.gpus}"
        )
    lines += [f"--mem={request.memory_mib}M"] if request.memory_mib else []
    lines += [f"--tmp={request.local_disk_gib * 1024:.0f}"] if request.local_disk_gib else []
    lines += [f"--account={request.account}"] if request.account else []
    longest = minutes_of(part.words.get("MaxTime", "UNLIMITED")) or 60
    minutes = math.ceil(request.time_s / 60) if request.time_s else min(60, int(longest))
    lines.append(f"--time={minutes}")
    directives = "".join(f"#SBATCH {line}\n" for line in lines)
    return f"#!/bin/bash\n{directives}sleep 20\n"
