"""Make a disagreement small: take away what does not matter, as long as it stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from disagreements import Case
from msgspec.structs import replace
from random_sites import Gpus, Kind, Site
from site_twin import Ground
from site_verdicts import judge_site
from slurm_daemons import TwinError

from teho.model.request import Request

__all__ = ["features_of", "shrunken"]

_PLAIN = {
    "SelectTypeParameters": "CR_Core_Memory",
    "EnforcePartLimits": "ALL",
    "AccountingStorageEnforce": "associations,limits,qos",
    "AccountingStorageTRES": "gres/gpu",
}


def shrunken(ground: Ground, case: Case, end_s: float) -> Case:
    """Return a smaller case of the same category; the smallest that is found in time.

    Args:
        ground: where sites start.
        case: to be shrunk.
        end_s: when to give up, on the monotonic clock.
    """
    best = case

    def still(site: Site, request: Request | None) -> bool:
        nonlocal best
        if time.monotonic() > end_s:
            return False
        try:
            with ground.started(site) as twin:
                found = judge_site(twin, [request] if request else [], jobs=8).cases
        except TwinError:
            return False
        same = [one for one in found if one.key == case.key]
        best = same[0] if same else best
        return bool(same)

    for round_moves in (_coarse, _fine):
        _walk(lambda: best, round_moves, still)
    return best


def _walk(
    now: Callable[[], Case],
    moves: Callable[[Case], Iterator[tuple[Site, Request | None]]],
    still: Callable[[Site, Request | None], bool],
) -> None:
    tried: set[str] = set()
    begin = True
    while begin:
        begin = False
        for site, request in moves(now()):
            text = repr((site, request))
            if text in tried:
                continue
            tried.add(text)
            if still(site, request):
                begin = True
                break


def _coarse(case: Case) -> Iterator[tuple[Site, Request | None]]:
    site, request = case.site, case.request
    if case.partition and len(site.parts) > 1:
        part = site.part(case.partition)
        kinds = tuple(site.kinds_in(part))
        yield replace(site, parts=(part,), kinds=kinds), request
    plain = {**_PLAIN, "AccountingStorageTRES": site.words["AccountingStorageTRES"]}
    if site.words != plain:
        yield replace(site, words=plain), request
    if site.qos or any(one.words or one.user_words for one in site.accounts):
        yield _without_qos(replace(site, accounts=_bare_accounts(site))), request
    for kind in site.kinds:
        simple = replace(kind, disk_mib=0, features=(), words={}, drained=0)
        if simple != kind:
            yield _with_kind(site, kind, simple), request
    if request and request.launcher != "plain":
        yield site, replace(request, launcher="plain")


def _fine(case: Case) -> Iterator[tuple[Site, Request | None]]:
    site, request = case.site, case.request
    yield from ((smaller, request) for smaller in _smaller_sites(site))
    if request:
        plain = Request(gpus=request.gpus, command=request.command)
        for name in (
            "gpu_memory_gib", "gpu_type", "nodes", "cpus_per_gpu", "cpus", "memory_mib", "time_s",
            "local_disk_gib", "partition", "account", "launcher",
        ):  # fmt: skip
            if getattr(request, name) != getattr(plain, name):
                yield site, replace(request, **{name: getattr(plain, name)})
        if request.gpus > 1:
            yield site, replace(request, gpus=1)


def _smaller_sites(site: Site) -> Iterator[Site]:
    if len(site.parts) > 1:
        for gone in site.parts:
            yield replace(site, parts=tuple(one for one in site.parts if one != gone))
    used = {name for part in site.parts for name in part.kinds}
    for kind in site.kinds:
        if kind.name not in used:
            yield replace(site, kinds=tuple(one for one in site.kinds if one != kind))
        elif len(used) > 1 and all(set(part.kinds) != {kind.name} for part in site.parts):
            parts = tuple(
                replace(part, kinds=tuple(one for one in part.kinds if one != kind.name))
                for part in site.parts
            )
            kinds = tuple(one for one in site.kinds if one != kind)
            yield replace(site, kinds=kinds, parts=parts)
    for number, part in enumerate(site.parts):
        for word in part.words:
            less = {key: value for key, value in part.words.items() if key != word}
            others = site.parts[number + 1 :]
            changed = (*site.parts[:number], replace(part, words=less), *others)
            yield replace(site, parts=changed)
    for word in site.words:
        plain = {key: value for key, value in site.words.items() if key != word}
        if word in _PLAIN:
            plain = {**site.words, word: _PLAIN[word]}
        if plain != site.words and word != "AccountingStorageTRES":
            yield replace(site, words=plain)
    yield from _fewer_limits(site)
    for kind in site.kinds:
        for simple in _simpler_kinds(kind):
            if simple != kind:
                yield _with_kind(site, kind, simple)


def _fewer_limits(site: Site) -> Iterator[Site]:
    for number, one in enumerate(site.qos):
        for word in one.words:
            less = {key: value for key, value in one.words.items() if key != word}
            qos = list(site.qos)
            qos[number] = replace(one, words=less)
            yield replace(site, qos=tuple(qos))
    if any(one.words or one.user_words for one in site.accounts):
        yield replace(site, accounts=_bare_accounts(site))
    if len(site.accounts) > 1:
        yield replace(site, accounts=site.accounts[:1])
        yield replace(site, accounts=site.accounts[1:])


def _simpler_kinds(kind: Kind) -> Iterator[Kind]:
    yield replace(kind, words={})
    yield replace(kind, drained=0)
    yield replace(kind, threads=1, only_cores=False)
    yield replace(kind, count=1, drained=min(kind.drained, 1))
    yield replace(kind, disk_mib=0)
    yield replace(kind, features=())
    if len(kind.gpus) > 1:
        yield replace(kind, gpus=kind.gpus[:1])
        yield replace(kind, gpus=kind.gpus[1:])
    if any(one.type not in {"", "a100"} for one in kind.gpus) and len(kind.gpus) == 1:
        yield replace(kind, gpus=(Gpus("a100", kind.gpus[0].count),))


def _bare_accounts(site: Site) -> tuple[object, ...]:
    return tuple(replace(one, words={}, user_words={}) for one in site.accounts)


def _without_qos(site: Site) -> Site:
    gone = ("QOS", "AllowQos", "DenyQos")
    parts = tuple(
        replace(part, words={key: text for key, text in part.words.items() if key not in gone})
        for part in site.parts
    )
    return replace(site, qos=(), parts=parts)


def _with_kind(site: Site, kind: Kind, other: Kind) -> Site:
    return replace(site, kinds=tuple(other if one == kind else one for one in site.kinds))


def features_of(case: Case) -> str:
    """Return the words of a shrunken case that may be its cause, in one line."""
    site, found = case.site, set[str]()
    found |= {key for part in site.parts for key in part.words}
    found |= {f"{key}={value}" for key, value in site.words.items() if _PLAIN.get(key) != value}
    found |= {f"qos {key}" for one in site.qos for key in one.words}
    for one in site.accounts:
        found |= {f"account {key}" for key in one.words} | {f"user {key}" for key in one.user_words}
    for kind in site.kinds:
        found |= set(kind.words)
        found |= {"drained nodes"} if kind.drained else set()
        found |= (
            {f"ThreadsPerCore=2, CPUs={kind.cpus_per_core} a core"} if kind.threads > 1 else set()
        )
        found |= {"GPUs of several types in a node"} if len(kind.gpus) > 1 else set()
        found |= {"GPUs without a type"} if any(not one.type for one in kind.gpus) else set()
    found |= {"several kinds of nodes"} if len(site.kinds) > 1 else set()
    return "; ".join(sorted(word for word in found if not word.startswith("AccountingStorageTRES")))
