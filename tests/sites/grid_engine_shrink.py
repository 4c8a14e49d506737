"""Make a disagreement small: take away what does not matter, as long as it stays."""

from __future__ import annotations

import time
from collections.abc import Iterator

from disagreements import Case
from grid_engine_site_twin import started
from grid_engine_sites import Host, Queue, Site
from grid_engine_verdicts import judge_site
from msgspec.structs import replace

from teho.model.request import Request

__all__ = ["shrunken"]


def shrunken(case: Case, end_s: float) -> Case:
    """Return a smaller case of the same category; the smallest that is found in time.

    Args:
        case: to be shrunk.
        end_s: when to give up, on the monotonic clock.
    """
    best, tried = case, set[str]()
    while True:
        for site, request in _moves(best):
            text = repr((site, request))
            if text in tried:
                continue
            tried.add(text)
            if time.monotonic() > end_s:
                return best
            same = [one for one in _judged(site, request) if one.key == case.key]
            if same:
                best = same[0]
                break
        else:
            return best


def _judged(site: Site, request: Request | None) -> list[Case]:
    try:
        with started(site) as twin:
            return judge_site(twin, [request] if request else []).cases
    except (RuntimeError, TimeoutError):
        return []


def _moves(case: Case) -> Iterator[tuple[Site, Request | None]]:
    site, request = case.site, case.request
    queues = [one for one in site.queues if one.name == case.partition]
    if queues and len(site.queues) > 1:
        yield replace(site, queues=tuple(queues)), request
    if site.quotas:
        yield replace(site, quotas={}), request
    if site.projects:
        yield _without_projects(site), replace(request, account=None) if request else None
    if len(site.hosts) > 1:
        yield from ((_with_host(site, host), request) for host in site.hosts)
    if site.complexes:
        yield _without_memory(site), request
        yield from ((replace(site, complexes=rest), request) for rest in _less(site.complexes))
    if site.gpus and (request is None or not request.gpus):
        yield _without_gpus(site), request
    for one in site.environments:
        yield _without_environment(site, one.name), request
    for number, queue in enumerate(site.queues):
        for simple in _simpler(site, queue):
            if simple != queue:
                others = list(site.queues)
                others[number] = simple
                yield replace(site, queues=tuple(others)), request
    if request:
        yield from ((site, simple) for simple in _plainer(request))


def _less(words: dict[str, str]) -> Iterator[dict[str, str]]:
    for word in words:
        yield {key: value for key, value in words.items() if key != word}


def _without_projects(site: Site) -> Site:
    queues = tuple(
        replace(one, words={key: text for key, text in one.words.items() if "projects" not in key})
        for one in site.queues
    )
    return replace(site, projects=(), words={}, queues=queues)


def _with_host(site: Site, host: Host) -> Site:
    groups = {name: (host.name,) for name, own in site.groups.items() if host.name in own}
    queues = tuple(
        replace(one, hosts=("@allhosts",), slots=site.on_host(one.slots, host),
                environments=site.on_host(one.environments, host))
        for one in site.queues
        if host in site.hosts_of(one)
    )  # fmt: skip
    return replace(site, hosts=(host,), groups=groups, queues=queues, quotas={})


def _without_memory(site: Site) -> Site:
    rows = {key: row for key, row in site.complexes.items() if key != site.memory}
    hosts = tuple(
        replace(one, values={key: text for key, text in one.values.items() if key != site.memory})
        for one in site.hosts
    )
    return replace(site, complexes=rows, hosts=hosts, quotas={})


def _without_gpus(site: Site) -> Site:
    names = {one.complex for one in site.gpus}
    queues = tuple(
        replace(one, values={key: text for key, text in one.values.items() if key not in names})
        for one in site.queues
    )
    hosts = tuple(replace(one, gpus={}) for one in site.hosts)
    return replace(site, gpus=(), hosts=hosts, queues=queues, quotas={})


def _without_environment(site: Site, name: str) -> Site:
    def without(text: str) -> str:
        return " ".join(one for one in text.split() if one != name) or "NONE"

    queues = tuple(
        replace(one, environments=without(site.on_host(one.environments, site.hosts[0])))
        for one in site.queues
    )
    left = tuple(one for one in site.environments if one.name != name)
    return replace(site, environments=left, queues=queues, quotas={})


def _simpler(site: Site, queue: Queue) -> Iterator[Queue]:
    yield replace(queue, words={"h_rt": "48:00:00", "shell_start_mode": "unix_behavior"}, state="")
    for word in queue.words:
        yield replace(queue, words={key: own for key, own in queue.words.items() if key != word})
    host = site.hosts_of(queue)[0]
    yield replace(queue, state="")
    yield replace(queue, slots=str(host.all_cores), hosts=("@allhosts",))


def _plainer(request: Request) -> Iterator[Request]:
    plain = Request(gpus=request.gpus, command=request.command)
    for name in ("gpu_type", "cpus_per_gpu", "cpus", "memory_mib", "time_s", "account"):
        if getattr(request, name) != getattr(plain, name):
            yield replace(request, **{name: getattr(plain, name)})
    if request.gpus > 1:
        yield replace(request, gpus=1)
