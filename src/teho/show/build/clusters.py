"""The catalogue as documents: all clusters, one cluster, and differences from the live cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from teho.clusters.differences import Difference
from teho.clusters.size import cores_per_gpu, whole_size
from teho.model.cluster import (
    UNKNOWN_SITE,
    Cluster,
    Dialect,
    Gpu,
    OtherGpus,
    ParallelEnvironment,
    Term,
)
from teho.model.document import Document, Fact, Item
from teho.patterns import lazy_pattern
from teho.schedulers.registry import scheduler_or_none
from teho.show.build.layout import column, document, listing, table
from teho.units import counted, format_mib, parse_mib

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
"""Fields with an amount of memory. The `memory` of the dialect is a word instead."""
_TITLES = {
    "nodes": "Nodes",
    "links": "Pages",
    "totals": "Size of the whole cluster",
    "partitions": "Partitions",
    "shares": "Cores and node memory for each GPU",
    "quotas": "Quotas",
    "dialect": "How to write a request",
    "account": "Account",
    "local_disk": "Local disk",
    "billing": "Bill of a job for one hour",
    "qos": "Limits of each QOS",
    "binding": "Cores nearest to each GPU",
    "driver": "GPU driver of the compute nodes",
    "environments": "Your own environments",
    "software": "Software",
    "environment": "Environment variables for each generation of containers",
}
"""Keys of the file with their titles, the most wanted ones first."""
_NAMES = {"Share": "gpu", "Software": "framework", "Container": "generation"}
"""The field with the name of a table, if this is not `name`."""
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
"""Fields with numbers by name."""
_SENTENCES: dict[tuple[str, bool | str], str] = {
    ("gpu_type_optional", False): "GPU type required",
    ("memory", "node"): "memory requested for each node",
    ("memory", "core"): "memory requested for each core",
    ("memory", "none"): "memory not requested: it comes with GPUs, cores or nodes",
}
"""Values that say too little behind the name of their key."""
_PLACEHOLDER = lazy_pattern(r"\{(\w+)\}")
_PLACEHOLDERS = {
    "constraint": "the value for the kind of node",
    "cores": "the number of cores",
    "count": "the number of GPUs",
    "gib": "the number of GiB",
    "memory": "the amount of memory",
    "name": "the name of your environment",
    "nodes": "the number of nodes",
    "type": "the GPU type",
}
"""What Teho writes into an option in place of each name."""
_ABBREVIATION = lazy_pattern(r"\b(?:[cg]pu|qos)")
_REMARKS = frozenset({"source", "notes", "unknown", "lines"})
"""Fields that are not among the facts of a table."""
_FIRST = frozenset({"nodes", "links", "partitions", "shares", "account", "billing"})
"""Keys that are shown without --why."""


def clusters_document(clusters: Iterable[Cluster]) -> Document:
    """Lay out the list of clusters, those that take jobs first."""
    ordered = sorted(clusters, key=lambda one: (one.status, one.site, one.name))
    by_site = sorted(ordered, key=lambda one: one.site)
    sites = [
        Item(lead=site, text=", ".join(map(_in_site, members)))
        for site, members in groupby(by_site, key=lambda one: one.site)
    ]
    active = sum(cluster.status == "active" for cluster in ordered)
    return document(
        title="teho clusters",
        verdict=f"{counted(len(ordered), 'cluster')}: {active} "
        f"{'accepts' if active == 1 else 'accept'} jobs.",
        verdict_severity="good",
        tables=(
            table(
                "clusters",
                "Clusters",
                ordered,
                column("name", "Name", lambda one: one.name),
                column("status", "Status", _status),
                column("cores", "CPU cores", lambda one: whole_size(one)[0], decimals=0),
                column("gpus", "GPUs", lambda one: whole_size(one)[1], decimals=0),
                column("gpu_types", "GPU types", _gpu_types),
                column("verified", "Verified", lambda one: one.verified_on.isoformat()),
                note="The column CPU cores shows the number of cores in nodes without GPUs.",
            ),
        ),
        lists=(listing("sites", "Sites", sites, "why"),),
        commands=("`teho clusters show NAME` shows one cluster, with the source of every fact.",),
    )


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _in_site(cluster: Cluster) -> str:
    gpus = _gpus_of(cluster)
    have = "no GPUs" if gpus == "none" else f"nodes with {gpus}"
    return f"{cluster.name} ({scheduler_or_none(cluster.scheduler).title}; {have})"


def _status(cluster: Cluster) -> str:
    return cluster.status + (f" → {cluster.successor}" if cluster.successor else "")


def _size_words(cluster: Cluster) -> str | None:
    cores, gpus = whole_size(cluster)
    if not cores and not gpus:
        return None
    each = cores_per_gpu(cluster)
    ratio = f" ({each:,} cores for each GPU)" if each else ""
    return f"{_count(gpus)} GPUs, and {_count(cores)} cores in nodes without GPUs{ratio}"


def _gpu_types(cluster: Cluster) -> str:
    types = [node.gpu.type for node in cluster.nodes if node.gpu and not node.gpu.part_of]
    return ", ".join(dict.fromkeys(types)) or "none"


def _gpus_of(cluster: Cluster) -> str:
    """Return the GPUs of each kind of node, without MIG slices."""
    kinds = [kind.gpu for kind in cluster.nodes if kind.gpu and not kind.gpu.part_of]
    return ", ".join(dict.fromkeys(f"{gpu.count or '?'} × {gpu.type}" for gpu in kinds)) or "none"


def cluster_document(cluster: Cluster, path: Path) -> Document:
    """Lay out one cluster with the source of every fact.

    Facts have the names of the keys in the file.
    """
    when = f" on {cluster.retired_on.isoformat()}" if cluster.retired_on else ""
    retired = f"{'was' if when else 'is'} retired{when}"
    status = "accepts jobs" if cluster.status == "active" else retired
    successor = (
        f". Its successor: `teho clusters show {cluster.successor}`" if cluster.successor else ""
    )
    scheduler = scheduler_or_none(cluster.scheduler).title
    site = "" if cluster.site == UNKNOWN_SITE else cluster.site
    verdict = f"{cluster.title} ({', '.join(filter(None, (scheduler, site)))}) {status}"
    internet = cluster.internet_on_compute_nodes
    sources = [
        Item(
            lead=name,
            text=source.document
            + (f", version {source.commit}" if source.commit else "")
            + (f", read on {source.read_on}" if source.read_on else ""),
        )
        for name, source in cluster.sources.items()
    ]
    code = [Item(text="", code=cluster.script_lines)] if cluster.script_lines else []
    reach = None if internet is None else f"{'reach' if internet else 'do not reach'} the internet"
    return document(
        title=cluster.title,
        verdict=verdict + successor,
        verdict_severity="good" if cluster.status == "active" else "warning",
        facts=(
            Fact("name", "name", cluster.name),
            Fact("verified_on", "verified", cluster.verified_on.isoformat()),
            Fact("hosts", "hosts", ", ".join(cluster.hosts) or None),
            Fact("internet", "compute nodes", reach),
            Fact("size", "size", _size_words(cluster)),
        ),
        lists=(
            *(
                listing(
                    key,
                    title,
                    [_item(name, entry) for name, entry in _entries(getattr(cluster, key))],
                    "default" if key in _FIRST else "why",
                )
                for key, title in _TITLES.items()
            ),
            listing("script_lines", "Lines that every job script needs", code, "why"),
            listing("conflicts", "Conflicts between sources", cluster.conflicts, "why"),
            listing("notes", "Notes", cluster.notes, "why"),
            listing("sources", "Sources", sources, "why"),
            listing("file", "Teho's file about this cluster", [str(path)], "why"),
        ),
    )


def differences_document(known: Cluster, live: Cluster, items: Sequence[Difference]) -> Document:
    """Lay out the differences between the catalogue and the live cluster."""
    asked = next(iter(live.sources.values())).document
    found = [
        Item(
            lead=f"{item.place}, {item.fact}",
            text=f"{item.catalogue} in Teho's file, {item.live} on this cluster",
            details=(f"Source: {item.source}",) if item.source else (),
        )
        for item in items
    ]
    hint = (
        "Teho compares only facts that the scheduler reports. `teho clusters show "
        f"{known.name} --path` prints the path of Teho's file about this cluster."
    )
    count = "1 fact differs" if len(items) == 1 else f"{len(items)} facts differ"
    return document(
        title=f"teho clusters discover · {known.title}",
        verdict=f"{known.title}: {count} between Teho's file about this cluster and {asked}"
        if items
        else f"{known.title}: everything that {asked} reports agrees with Teho's file.",
        verdict_severity="warning" if items else "good",
        lists=(listing("differences", "Differences", found, "first"),),
        commands=(hint,) if items else (),
    )


def _entries(value: Any) -> Iterator[tuple[str, msgspec.Struct]]:
    """Yield the tables of one key of the file, each with its name."""
    if isinstance(value, msgspec.Struct):
        yield "", value
    elif isinstance(value, dict):
        yield from value.items()
    else:
        for noun in value or ():
            name = getattr(noun, _NAMES.get(type(noun).__name__, "name"))
            yield getattr(noun, "title", name), noun


def _item(name: str, entry: msgspec.Struct) -> Item:
    unknown = ", ".join(_in_words(key) for key in getattr(entry, "unknown", ()))
    remarks = (
        getattr(entry, "notes", ""),
        f"Not documented: {unknown}" if unknown else "",
        f"Source: {getattr(entry, 'source', '')}",
    )
    return Item(
        lead=name,
        text=" · ".join(_facts(entry)),
        code=tuple(getattr(entry, "lines", ())),
        details=tuple(remark for remark in remarks if remark),
    )


def _facts(entry: msgspec.Struct) -> Iterator[str]:
    """Yield the facts of a table without its name, the GPUs of a node first.

    Fields that are empty or have their default are left out. The fields of the dialect are never
    left out, because requests are written with them.
    """
    skipped = {_NAMES.get(type(entry).__name__, "name"), "label", *_REMARKS}
    for field in sorted(msgspec.structs.fields(entry), key=lambda field: field.name != "gpu"):
        value = getattr(entry, field.name)
        if field.name in skipped or value is None or value in ("", (), {}):
            continue
        if field.name == "gpu_type_optional" and "{type}" not in getattr(entry, "gpus", ""):
            continue
        if field.required or value != field.default or isinstance(entry, Dialect):
            yield from _fact(field.name, value)


def _fact(key: str, value: Any) -> Iterator[str]:
    first = value[0] if isinstance(value, tuple) else None
    if isinstance(value, Gpu):
        yield _gpu(value)
    elif isinstance(value, (bool, str)) and (key, value) in _SENTENCES:
        yield _SENTENCES[key, value]
    elif isinstance(value, bool):
        yield _in_words(key) if value else _labelled(_in_words(key), "no")
    elif key in _MEMORIES and value[:1].isdigit():
        yield _labelled(_in_words(key), format_mib(parse_mib(value)))
    elif key.endswith("_gib"):
        yield _labelled(_in_words(key.removesuffix("_gib")), f"{value:g} GiB")
    elif isinstance(value, dict) and key in _LIMITS:
        yield _labelled(_in_words(key), ", ".join(_limit(*pair) for pair in value.items()))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield f"`{name}={inner}`"
    elif isinstance(first, OtherGpus):
        yield f"also {', '.join(f'{one.count} × {one.type}' for one in value)}"
    elif isinstance(first, ParallelEnvironment):
        yield _labelled(_in_words(key), ", ".join(map(_parallel_environment, value)))
    elif isinstance(first, Term):
        which = "the larger of these two:" if len(value) == 2 else "the largest of these:"
        is_sum = key == "sum" or len(value) == 1
        terms = (" + " if is_sum else "; ").join(map(_term, value))
        yield terms if is_sum else f"{which} {terms}"
    elif isinstance(first, tuple):
        yield from (_labelled(f"GPU {number}", _range(cores)) for number, cores in enumerate(value))
    elif isinstance(value, tuple):
        yield _labelled(_in_words(key), ", ".join(str(item) for item in value))
    else:
        shown = value.isoformat() if isinstance(value, date) else value
        text = f"{shown:g}" if isinstance(shown, float) else str(shown)
        means = [f"{{{name}}} is {_PLACEHOLDERS[name]}" for name in _named(text)]
        yield _labelled(_in_words(key), text + (f" ({', '.join(means)})" if means else ""))


def _named(text: str) -> Iterator[str]:
    """Yield the names in a text that Teho replaces."""
    return filter(_PLACEHOLDERS.__contains__, _PLACEHOLDER.findall(text))


def _limit(what: str, number: int) -> str:
    """Write one number of a table of limits, such as `64 cpu` or `8 GiB mem`."""
    return f"{format_mib(number)} {what}" if what in {"mem", "memory"} else f"{number} {what}"


def _parallel_environment(one: ParallelEnvironment) -> str:
    rule = {
        "one_node": "one node",
        "fill": "fills one node after the other",
        "spread": "takes cores from all nodes in turn",
        "fixed": f"{one.cores_per_node} per node",
    }[one.rule]
    about = [rule] + ([f"at most {one.max_cores} cores"] if one.max_cores is not None else [])
    return f"{one.name} ({', '.join(about)})"


def _labelled(label: str, text: str) -> str:
    return f"{label} {text}".lstrip()


def _gpu(gpu: Gpu) -> str:
    about = [gpu.model, f"{gpu.memory_gib:g} GiB" if gpu.memory_gib else "memory not documented"]
    about += [f"weight {gpu.weight:g}"] if gpu.weight != 1 else []
    about += [f"a slice of {gpu.part_of}"] if gpu.part_of else []
    about += [f"at most {gpu.max_per_job} per job"] if gpu.max_per_job else []
    count = f"{gpu.count} × " if gpu.count else ""
    return f"{count}{gpu.type} ({', '.join(about)})"


def _term(term: Term) -> str:
    text = _in_words(term.quantity.removesuffix("_gib")) + (
        " in GiB" if term.quantity.endswith("_gib") else ""
    )
    text = f"{term.gpu_type} {text}" if term.gpu_type else text
    if term.per != 1:
        text += f" / {term.per:g}"
        text += " (rounded up)" * term.up
    return text if term.times == 1 else f"{text} × {term.times:g}"


def _range(cores: tuple[int, ...]) -> str:
    first, last = cores[0], cores[-1]
    whole = cores == tuple(range(first, last + 1)) and len(cores) > 1
    return f"{first}–{last}" if whole else ", ".join(map(str, cores))


def _in_words(key: str) -> str:
    words = "number of nodes" if key == "count" else key.replace("_", " ")
    return _ABBREVIATION.sub(lambda found: found.group().upper(), words)
