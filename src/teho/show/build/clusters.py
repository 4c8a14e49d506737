"""The catalogue as documents: all clusters, one with its sources, and what differs from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from teho.clusters.differences import Difference
from teho.model.cluster import Cluster, Dialect, Gpu, OtherGpus, ParallelEnvironment, Term
from teho.model.document import Cell, Column, Document, Fact, Item, Listing, Table
from teho.schedulers.registry import scheduler_or_none
from teho.units import counted, format_mib, parse_mib
from teho.version import __version__

__all__ = ["cluster_document", "clusters_document", "differences_document"]

_MEMORIES = frozenset(
    {
        "memory",
        "max_memory",
        "max_memory_per_cpu",
        "default_memory_per_core",
        "default_memory_per_cpu",
        "default_memory_per_gpu",
        "default_memory_per_node",
    }
)
"""The dialect has a `memory` too, which is a word."""
_TITLES = {
    "nodes": "Nodes",
    "partitions": "Partitions",
    "shares": "Fair share of a GPU",
    "quotas": "Quotas",
    "dialect": "How a request is written",
    "account": "Account",
    "local_disk": "Local disk",
    "billing": "Bill for an hour",
    "qos": "Limits of each QOS",
    "binding": "Cores nearest to each GPU",
    "driver": "GPU driver of the compute nodes",
    "environments": "Your own environments",
    "software": "Software",
    "environment": "Variables, by the containers' generation",
}
"""The file's tables, in the order in which a reader asks for them."""
_NAMES = {"Share": "gpu", "Software": "framework", "Container": "generation"}
"""The field that tells one table from its neighbours, where that is not `name`."""
_LIMITS = frozenset(
    {
        "limits",
        "node_counts",
        "max_of_job",
        "max_of_node",
        "min_of_job",
        "max_of_user",
        "max_of_all",
    }
)
"""Fields that hold numbers by name."""
_ABBREVIATION = re.compile(r"\b(?:[cg]pu|qos)")
_REMARKS = frozenset({"source", "notes", "unknown", "lines"})
"""Fields that stand below the facts, each in its own way."""
_COLUMNS = (
    Column(key="name", label="Name"),
    Column(key="scheduler", label="Scheduler"),
    Column(key="verified", label="Verified"),
    Column(key="status", label="Status"),
    Column(key="gpus", label="GPUs of a node"),
)
_FIRST = frozenset({"nodes", "partitions", "shares", "account", "billing"})
"""What is shown without --why."""


def clusters_document(clusters: Iterable[Cluster]) -> Document:
    """Lay out the list of clusters, those that take jobs first."""
    ordered = sorted(clusters, key=lambda one: (one.status, one.site, one.name))
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "name": cluster.name,
            "scheduler": scheduler_or_none(cluster.scheduler).title,
            "verified": cluster.verified_on.isoformat(),
            "status": _status(cluster),
            "gpus": _gpus_of(cluster),
        }
        for cluster in ordered
    )
    sites = [
        Item(lead=site, text=", ".join(f"{one.name} ({_gpus_of(one)})" for one in members))
        for site, members in groupby(
            sorted(ordered, key=lambda one: one.site), key=lambda one: one.site
        )
    ]
    active = sum(cluster.status == "active" for cluster in ordered)
    return Document(
        title="teho clusters",
        verdict=f"{counted(len(ordered), 'cluster')}, {active} of them take jobs.",
        verdict_severity="good",
        tables=(Table(key="clusters", title="Clusters", columns=_COLUMNS, rows=rows),),
        lists=(Listing(key="sites", title="Sites", items=tuple(sites), level="why"),),
        commands=("One of them, with the source of every fact: `teho clusters show NAME`",),
        teho_version=__version__,
    )


def _status(cluster: Cluster) -> str:
    return cluster.status + (f" → {cluster.successor}" if cluster.successor else "")


def _gpus_of(cluster: Cluster) -> str:
    """Name the GPUs of each kind of node; slices (MIG) are left to `clusters show`."""
    kinds = [kind.gpu for kind in cluster.nodes if kind.gpu and not kind.gpu.part_of]
    return ", ".join(dict.fromkeys(f"{gpu.count or '?'} × {gpu.type}" for gpu in kinds)) or "none"


def cluster_document(cluster: Cluster, path: Path) -> Document:
    """Lay out one cluster with the source of every fact.

    Facts have the names of the file's own keys, so that a reader finds them there.
    """
    when = f" on {cluster.retired_on.isoformat()}" if cluster.retired_on else ""
    status = "takes jobs" if cluster.status == "active" else f"retired{when}"
    successor = f" → `teho clusters show {cluster.successor}`" if cluster.successor else ""
    verdict = (
        f"{cluster.title}, {scheduler_or_none(cluster.scheduler).title}, {cluster.site}: {status}"
    )
    internet = cluster.internet_on_compute_nodes
    sources = tuple(
        Item(
            lead=name,
            text=source.document
            + (f" at {source.commit}" if source.commit else "")
            + (f", read {source.read_on.isoformat()}" if source.read_on else ""),
        )
        for name, source in cluster.sources.items()
    )
    code = (Item(text="", code=cluster.script_lines),) if cluster.script_lines else ()
    return Document(
        title=cluster.title,
        verdict=verdict + successor,
        verdict_severity="good" if cluster.status == "active" else "warning",
        facts=(
            Fact("name", "name", cluster.name),
            Fact("verified_on", "verified", cluster.verified_on.isoformat()),
            Fact("hosts", "hosts", ", ".join(cluster.hosts) or None),
            Fact(
                "internet",
                "compute nodes",
                None
                if internet is None
                else f"{'reach' if internet else 'do not reach'} the internet",
            ),
        ),
        lists=(
            *(
                Listing(
                    key=key,
                    title=title,
                    items=tuple(
                        _item(name, noun) for name, noun in _entries(getattr(cluster, key))
                    ),
                    level="default" if key in _FIRST else "why",
                )
                for key, title in _TITLES.items()
            ),
            Listing(key="script_lines", title="Lines of every job script", items=code, level="why"),
            _remarks("conflicts", "Where sources disagree", cluster.conflicts),
            _remarks("notes", "Notes", cluster.notes),
            Listing(key="sources", title="Sources", items=sources, level="why"),
            _remarks("file", "File", (str(path),)),
        ),
        teho_version=__version__,
    )


def _remarks(key: str, title: str, texts: Sequence[str]) -> Listing:
    return Listing(
        key=key, title=title, items=tuple(Item(text=text) for text in texts), level="why"
    )


def differences_document(known: Cluster, live: Cluster, items: Sequence[Difference]) -> Document:
    """Lay out where the catalogue and the live cluster differ."""
    asked = next(iter(live.sources.values())).document
    found = tuple(
        Item(
            lead=f"{item.place}, {item.fact}",
            text=f"catalogue {item.catalogue}, here {item.live}",
            details=(f"Source: {item.source}",) if item.source else (),
        )
        for item in items
    )
    hint = (
        "Facts that the scheduler does not report are not compared. `teho clusters show "
        f"{known.name} --path` names the catalogue's file."
    )
    count = "1 fact differs" if len(items) == 1 else f"{len(items)} facts differ"
    return Document(
        title=f"teho clusters discover · {known.title}",
        verdict=f"{known.title}: {count} between the catalogue and {asked}"
        if items
        else f"{known.title}: all that {asked} reports is as the catalogue says.",
        verdict_severity="warning" if items else "good",
        lists=(Listing(key="differences", title="Differences", items=found, level="first"),),
        commands=(hint,) if items else (),
        teho_version=__version__,
    )


def _entries(value: Any) -> Iterator[tuple[str, msgspec.Struct]]:
    """Yield the tables of one key of the file, each with the name that tells it apart."""
    if isinstance(value, msgspec.Struct):
        yield "", value
    elif isinstance(value, dict):
        yield from value.items()
    else:
        for noun in value or ():
            name = getattr(noun, _NAMES.get(type(noun).__name__, "name"))
            yield getattr(noun, "title", name), noun


def _item(name: str, noun: msgspec.Struct) -> Item:
    unknown = ", ".join(_spoken(key) for key in getattr(noun, "unknown", ()))
    remarks = (
        getattr(noun, "notes", ""),
        f"Not documented: {unknown}" if unknown else "",
        f"Source: {getattr(noun, 'source', '')}",
    )
    return Item(
        lead=name,
        text=" · ".join(_facts(noun)),
        code=tuple(getattr(noun, "lines", ())),
        details=tuple(remark for remark in remarks if remark),
    )


def _facts(noun: msgspec.Struct) -> Iterator[str]:
    """Yield what a table says beside its name, a node's GPUs first.

    What is not said, or is as it is nearly everywhere, is left out; but the dialect is
    told in full, because a request is written by it.
    """
    told = {_NAMES.get(type(noun).__name__, "name"), "label", *_REMARKS}
    for field in sorted(msgspec.structs.fields(noun), key=lambda field: field.name != "gpu"):
        value = getattr(noun, field.name)
        if field.name in told or value is None or value in ("", (), {}):
            continue
        if field.required or value != field.default or isinstance(noun, Dialect):
            yield from _fact(field.name, value)


def _fact(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, Gpu):
        yield _gpu(value)
    elif isinstance(value, bool):
        yield _spoken(key) if value else _labelled(_spoken(key), "no")
    elif key in _MEMORIES and value[:1].isdigit():
        yield _labelled(_spoken(key), format_mib(parse_mib(value)))
    elif key.endswith("_gib"):
        yield _labelled(_spoken(key.removesuffix("_gib")), f"{value:g} GiB")
    elif isinstance(value, dict) and key in _LIMITS:
        yield _labelled(_spoken(key), ", ".join(_limit(*pair) for pair in value.items()))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield f"`{name}={inner}`"
    elif isinstance(value, tuple) and value and isinstance(value[0], OtherGpus):
        yield f"also {', '.join(f'{one.count} × {one.type}' for one in value)}"
    elif isinstance(value, tuple) and value and isinstance(value[0], ParallelEnvironment):
        yield _labelled(_spoken(key), ", ".join(map(_parallel_environment, value)))
    elif isinstance(value, tuple) and value and isinstance(value[0], Term):
        between = " + " if key == "sum" else ", "
        terms = between.join(_term(term) for term in value)
        yield _labelled("" if key == "sum" else _spoken(key), terms)
    elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
        yield from (_labelled(f"GPU {number}", _range(cores)) for number, cores in enumerate(value))
    elif isinstance(value, tuple):
        yield _labelled(_spoken(key), ", ".join(str(item) for item in value))
    else:
        shown = value.isoformat() if isinstance(value, date) else value
        text = f"{shown:g}" if isinstance(shown, float) else str(shown)
        yield _labelled(_spoken(key), text)


def _limit(what: str, number: int) -> str:
    """Write one number of a table of limits, such as `64 cpu` or `8 GiB mem`."""
    return f"{format_mib(number)} {what}" if what in {"mem", "memory"} else f"{number} {what}"


def _parallel_environment(one: ParallelEnvironment) -> str:
    rule = {
        "one_node": "one node",
        "fill": "node after node",
        "spread": "nodes in turns",
        "fixed": f"{one.cores_per_node} a node",
    }[one.rule]
    about = [rule] + ([f"at most {one.max_cores} cores"] if one.max_cores is not None else [])
    return f"{one.name} ({', '.join(about)})"


def _labelled(label: str, text: str) -> str:
    return f"{label} {text}".lstrip()


def _gpu(gpu: Gpu) -> str:
    about = [gpu.model, f"{gpu.memory_gib:g} GiB" if gpu.memory_gib else "memory not documented"]
    about += [f"weight {gpu.weight:g}"] if gpu.weight != 1 else []
    about += [f"a slice of {gpu.part_of}"] if gpu.part_of else []
    about += [f"at most {gpu.max_per_job} a job"] if gpu.max_per_job else []
    count = f"{gpu.count} × " if gpu.count else ""
    return f"{count}{gpu.type} ({', '.join(about)})"


def _term(term: Term) -> str:
    text = _spoken(term.of.removesuffix("_gib")) + (" GiB" if term.of.endswith("_gib") else "")
    text = f"{term.gpu_type} {text}" if term.gpu_type else text
    if term.per != 1:
        text += f" / {term.per:g}"
        text = f"⌈{text}⌉" if term.up else text
    return text if term.times == 1 else f"{text} × {term.times:g}"


def _range(cores: tuple[int, ...]) -> str:
    first, last = cores[0], cores[-1]
    whole = cores == tuple(range(first, last + 1)) and len(cores) > 1
    return f"{first}–{last}" if whole else ", ".join(map(str, cores))


def _spoken(key: str) -> str:
    return _ABBREVIATION.sub(lambda found: found.group().upper(), key.replace("_", " "))
