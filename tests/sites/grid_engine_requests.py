"""Random requests at and around a Grid Engine site's limits, and scripts by hand. Pure.

The scripts are what a user would write by hand who knows the site's own files and the man pages.
They share nothing with Teho's writer.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator

import msgspec
from grid_engine_sites import Gpus, Host, Queue, Site

from teho.model.request import Request

__all__ = ["ByHand", "by_hand", "draw_requests", "seconds_of"]

_MOST_SCRIPTS = 12


class ByHand(msgspec.Struct, frozen=True):
    """A script that asks for what a request says, in a queue."""

    text: str
    means: str = ""
    """What it says beyond the usual, such as `-P`."""


def draw_requests(site: Site, seed: str | int, program: str) -> Iterator[Request]:
    """Yield requests without end, for a program of the shell."""
    draw = random.Random(f"grid engine requests {site.seed} {seed}")
    while True:
        yield _request(draw, site, program)


def seconds_of(text: str) -> float:
    """Return a time of Grid Engine's files in seconds."""
    if text == "INFINITY":
        return math.inf
    total = 0.0
    for part in text.split(":"):
        total = total * 60 + float(part or 0)
    return total


def _request(draw: random.Random, site: Site, program: str) -> Request:
    queue = draw.choice(site.queues)
    host = draw.choice(site.hosts_of(queue))
    numbers: dict[str, object] = {"gpus": 0}
    if site.gpus_on(host, queue) and draw.random() < 0.75:
        numbers |= _of_gpus(draw, site, queue, host)
    else:
        numbers["cpus"] = draw.choice(_cores(site, queue, host))
    if draw.random() < 0.5:
        numbers["memory_mib"] = draw.choice(_memories(site, host))
    if draw.random() < 0.7:
        numbers["time_s"] = 60.0 * draw.choice(_times(site))
    if draw.random() < 0.6:
        numbers["partition"] = queue.name
    projects = [project.name for project in site.projects]
    numbers["account"] = draw.choice([None, *projects, *projects]) if projects else None
    if draw.random() < 0.02:
        numbers["account"] = "nowhere"
    command = ("sh", "-c", program)
    return Request(command=command, **numbers)  # type: ignore[arg-type]


def _around(*numbers: int | None) -> list[int]:
    return [n + more for n in numbers if n for more in (-1, 0, 1) if n + more > 0]


def _of_gpus(draw: random.Random, site: Site, queue: Queue, host: Host) -> dict[str, object]:
    name, count = draw.choice(sorted(site.gpus_on(host, queue).items()))
    gpus = draw.randint(1, max(1, count))
    if draw.random() < 0.35:
        gpus = draw.choice(_around(count) or [1])
    found: dict[str, object] = {"gpus": gpus}
    kind = next(one.type for one in site.gpus if one.complex == name)
    if kind and draw.random() < 0.6:
        found["gpu_type"] = kind
    elif draw.random() < 0.05:
        found["gpu_type"] = "k80"
    if draw.random() < 0.3:
        found["cpus_per_gpu"] = draw.choice([1, 2, *_around(host.all_cores // max(1, count))])
    elif draw.random() < 0.3:
        found["cpus"] = draw.choice(_cores(site, queue, host))
    return found


def _cores(site: Site, queue: Queue, host: Host) -> list[int]:
    slots = int(site.on_host(queue.slots, host))
    quotas = [int(count) for count in re.findall(r"slots=(\d+)", str(site.quotas))]
    limits = [one.slots for one in site.environments if one.slots < 100]
    all_of_host = int(host.values.get("slots", slots))
    fixed = [int(one.rule) for one in site.environments if one.rule.isdigit()]
    return [1, 1, 2, *fixed, *_around(slots, *quotas, *limits), all_of_host, slots // 2 or 1]


def _memories(site: Site, host: Host) -> list[int]:
    """Return sizes in MiB."""
    edges = [*_around(host.memory_mib), *_capacity(site, host)]
    return [1000, 3000, 8192, 16000, host.memory_mib // 2, *edges]


def _capacity(site: Site, host: Host) -> list[int]:
    text = host.values.get(site.memory, "")
    if not text:
        return []
    number = float(text[:-1]) * {"G": 1024, "M": 1}[text[-1]]
    return _around(int(number))


def _times(site: Site) -> list[int]:
    """Return times in minutes."""
    known = [seconds_of(queue.words.get("h_rt", "INFINITY")) / 60 for queue in site.queues]
    return [5, 60, *_around(*(int(minutes) for minutes in known if minutes < math.inf))]


def by_hand(site: Site, queue: Queue, request: Request, program: str) -> list[ByHand]:
    """Return scripts that make a request in a queue; none: no way is known."""
    found: dict[ByHand, None] = {}
    for host in site.hosts_of(queue):
        for one in _on_host(site, queue, host, request):
            lines, means = one
            for own, more in _accounts(site, request):
                words = [*lines, *own]
                directives = "".join(f"#$ {line}\n" for line in words)
                text = f"#!/bin/bash\n#$ -cwd\n#$ -S /bin/bash\n{directives}{program}\n"
                found[ByHand(text, " ".join(filter(None, (means, more))))] = None
    return sorted(found, key=lambda one: bool(one.means))[:_MOST_SCRIPTS]


def _accounts(site: Site, request: Request) -> Iterator[tuple[list[str], str]]:
    if request.account:
        yield [f"-P {request.account}"], ""
        return
    yield [], ""
    for project in site.projects:
        yield [f"-P {project.name}"], "-P"


def _on_host(
    site: Site, queue: Queue, host: Host, request: Request
) -> Iterator[tuple[list[str], str]]:
    least = request.cpus or (request.cpus_per_gpu or 0) * request.gpus or 1
    if (request.nodes or 1) > 1:
        return
    for cores, gpus in _gpus(site, queue, host, request, least):
        memory = _memory(site, host, request, cores)
        if memory is None:
            continue
        time_s = request.time_s
        if time_s is None and "h_rt" in site.complexes:
            time_s = min(3600.0, seconds_of(queue.words.get("h_rt", "INFINITY")))
        resources = [*gpus, *memory, *([f"h_rt={time_s:.0f}"] if time_s else [])]
        rest = [f"-l {','.join(resources)}"] if resources else []
        for own, means in _environments(site, queue, host, cores):
            yield [*own, *rest], means


def _gpus(
    site: Site, queue: Queue, host: Host, request: Request, least: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield numbers of slots, each with what asks for exactly the GPUs of the request."""
    if not request.gpus:
        yield least, []
        return
    there = site.gpus_on(host, queue)
    for one in site.gpus:
        if one.complex not in there or request.gpu_type not in {None, one.type}:
            continue
        if there[one.complex] < request.gpus:
            continue
        yield from _counted(one, request, least)


def _counted(one: Gpus, request: Request, least: int) -> Iterator[tuple[int, list[str]]]:
    if one.consumable == "JOB":
        yield least, [f"{one.complex}={request.gpus}"]
    elif request.gpus % least == 0:
        yield least, [f"{one.complex}={request.gpus // least}"]
    elif not request.cpus and request.gpus >= least:
        yield request.gpus, [f"{one.complex}=1"]


def _memory(site: Site, host: Host, request: Request, cores: int) -> list[str] | None:
    name, row = site.memory, site.complexes.get(site.memory, "")
    if request.memory_mib is None:
        return [f"{name}=512M"] if "FORCED" in row else []
    if request.memory_mib > host.memory_mib and not (name in host.values and row):
        return None
    if " JOB " in row:
        return [f"{name}={request.memory_mib}M"]
    # As a limit too it is multiplied by the slots, whether it is counted or not.
    return [f"{name}={math.ceil(request.memory_mib / cores)}M"]


def _environments(
    site: Site, queue: Queue, host: Host, cores: int
) -> Iterator[tuple[list[str], str]]:
    """Yield directives that ask for so many slots of one host."""
    if cores == 1:
        yield [f"-q {queue.name}"], ""
    names = site.on_host(queue.environments, host).split()
    for one in site.environments:
        if one.name not in names:
            continue
        words = [f"-pe {one.name} {cores}"]
        if one.rule == "$pe_slots":
            yield [f"-q {queue.name}", *words], "" if cores > 1 else "-pe with one slot"
        elif one.rule.isdigit():
            if int(one.rule) == cores:
                yield [f"-q {queue.name}", *words], f"-pe with allocation_rule {one.rule}"
        else:
            place = f"-q {queue.name}@{host.name}"
            yield [place, *words], f"-pe with {one.rule} and {'-q queue@host'}"
