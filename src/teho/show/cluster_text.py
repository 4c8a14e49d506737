"""The catalogue for a terminal: all clusters in a list, or one explained with its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.text import Text

from teho.model.cluster import Cluster, Dialect, Gpu, OtherGpus, ParallelEnvironment, Term
from teho.show.cells import plain
from teho.show.text.flow import dotted, flow, printed, words
from teho.units import format_mib, parse_mib

__all__ = ["render_cluster", "render_clusters"]

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
_SCHEDULERS = {"slurm": "Slurm", "grid_engine": "Grid Engine"}
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
_HEADS = ("  Name", "Scheduler", "GPUs of a node", "Verified", "Status")
_GPUS = 2
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


def render_clusters(clusters: Iterable[Cluster], *, width: int, color: bool) -> str:
    """Render the list of clusters, those that take jobs first; ends in a line break."""
    ordered = sorted(clusters, key=lambda one: (one.site, one.status, one.name))
    rows = [_cells(cluster) for cluster in ordered]
    widths = [max(map(cell_len, cells)) for cells in zip(_HEADS, *rows, strict=True)]
    # The GPUs take what the others leave, and go on below themselves.
    others = sum(widths) - widths[_GPUS] + 2 * (len(widths) - 1)
    widths[_GPUS] = min(widths[_GPUS], max(width - others, 16))
    lines = [Text(line.plain, "dim") for line in _row(_HEADS, widths)]
    for site, members in groupby(zip(ordered, rows, strict=True), key=lambda pair: pair[0].site):
        lines.append(Text(plain(site), "bold"))
        for cluster, cells in members:
            style = "dim" if cluster.status == "retired" else ""
            lines += [Text(line.plain, style) for line in _row(cells, widths)]
    hint = words("One of them, with the source of every fact: `teho clusters show NAME`")
    return printed([lines, flow(hint, width, Text())], width=width, color=color)


def _cells(cluster: Cluster) -> tuple[str, ...]:
    """Return the cells of a cluster's row; slices (MIG) are left to `clusters show`."""
    kinds = [kind.gpu for kind in cluster.nodes if kind.gpu and not kind.gpu.part_of]
    gpus = dict.fromkeys(f"{gpu.count or '?'} × {gpu.type}" for gpu in kinds)
    successor = f" → {cluster.successor}" if cluster.successor else ""
    return (
        f"  {plain(cluster.name)}",
        _SCHEDULERS[cluster.scheduler],
        plain(", ".join(gpus) or "none"),
        cluster.verified_on.isoformat(),
        f"{cluster.status}{successor}",
    )


def _row(cells: tuple[str, ...], widths: list[int]) -> Iterator[Text]:
    gpus = re.split(r"(?<=,) ", cells[_GPUS])
    for number, line in enumerate(flow([Text(item) for item in gpus], widths[_GPUS], Text())):
        texts = [line.plain if at == _GPUS else cell if number == 0 else ""
                 for at, cell in enumerate(cells)]  # fmt: skip
        row = "  ".join(
            text + " " * (width - cell_len(text)) for text, width in zip(texts, widths, strict=True)
        )
        yield Text(row.rstrip())


def render_cluster(cluster: Cluster, path: Path, *, width: int, color: bool) -> str:
    """Render one cluster with the source of every fact; ends in a line break.

    Facts carry the names of the file's own keys, so that a reader finds them there.
    """
    blocks = [_head(cluster, path, width)]
    for key, title in _TITLES.items():
        entries = list(_entries(getattr(cluster, key)))
        if entries:
            column = min(16, max(cell_len(name) for name, _ in entries))
            blocks.append([Text(title, "bold")])
            for name, noun in entries:
                blocks[-1] += _entry(name, noun, column, width)
    code = [Text("  ").append(plain(line), "cyan") for line in cluster.script_lines]
    blocks.append([Text("Lines of every job script", "bold"), *code] if code else [])
    for title, texts in (("Where sources disagree", cluster.conflicts), ("Notes", cluster.notes)):
        lines = [line for text in texts for line in flow(words(text), width, Text("  "), hang=4)]
        blocks.append([Text(title, "bold"), *lines] if lines else [])
    blocks.append(_sources(cluster, width))
    return printed((block for block in blocks if block), width=width, color=color)


def _head(cluster: Cluster, path: Path, width: int) -> list[Text]:
    when = f" on {cluster.retired_on.isoformat()}" if cluster.retired_on else ""
    status = "takes jobs" if cluster.status == "active" else f"retired{when}"
    successor = f" → `teho clusters show {cluster.successor}`" if cluster.successor else ""
    verdict = f"{cluster.title}, {_SCHEDULERS[cluster.scheduler]}, {cluster.site}: {status}"
    facts = [
        Text(f"name {cluster.name}"),
        Text(f"verified {cluster.verified_on.isoformat()}"),
    ]
    if cluster.hosts:
        facts.append(Text(f"hosts {', '.join(cluster.hosts)}"))
    internet = cluster.internet_on_compute_nodes
    if internet is not None:
        facts.append(Text(f"compute nodes {'reach' if internet else 'do not reach'} the internet"))
    return [
        *flow(words(verdict + successor), width, Text(), style="bold"),
        *flow(dotted(facts), width, Text("  ")),
        *flow(words(str(path)), width, Text("  "), style="dim"),
    ]


def _entries(value: Any) -> Iterator[tuple[str, msgspec.Struct]]:
    """Yield the tables of one key of the file, each with the name that tells it apart."""
    if isinstance(value, msgspec.Struct):
        yield "", value
    elif isinstance(value, dict):
        yield from value.items()
    else:
        for noun in value or ():
            name = getattr(noun, _NAMES.get(type(noun).__name__, "name"))
            yield name or getattr(noun, "label", ""), noun


def _entry(name: str, noun: msgspec.Struct, column: int, width: int) -> list[Text]:
    hang = column + 4 if column else 2
    lead = Text("  ").append(name.ljust(column), "bold").append("  ") if column else Text("  ")
    if lead.cell_len > hang:  # a long name is on a line of its own
        lines = [lead, *flow(dotted(list(_facts(noun))), width, Text(" " * hang))]
    else:
        lines = flow(dotted(list(_facts(noun))), width, lead)
    lines += [Text(" " * hang).append(plain(line), "cyan") for line in getattr(noun, "lines", ())]
    unknown = ", ".join(_spoken(key) for key in getattr(noun, "unknown", ()))
    for text in (
        getattr(noun, "notes", ""),
        f"Not documented: {unknown}" if unknown else "",
        f"Source: {getattr(noun, 'source', '')}",
    ):
        if text:
            lines += flow(words(text), width, Text(" " * hang), style="dim")
    return lines


def _facts(noun: msgspec.Struct) -> Iterator[Text]:
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


def _fact(key: str, value: Any) -> Iterator[Text]:
    if isinstance(value, Gpu):
        yield Text(_gpu(value))
    elif isinstance(value, bool):
        yield Text(_spoken(key)) if value else _labelled(_spoken(key), "no")
    elif key in _MEMORIES and value[:1].isdigit():
        yield _labelled(_spoken(key), format_mib(parse_mib(value)))
    elif key.endswith("_gib"):
        yield _labelled(_spoken(key.removesuffix("_gib")), f"{value:g} GiB")
    elif isinstance(value, dict) and key in _LIMITS:
        yield _labelled(_spoken(key), ", ".join(_limit(*pair) for pair in value.items()))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield Text(plain(f"{name}={inner}"), "cyan")
    elif isinstance(value, tuple) and value and isinstance(value[0], OtherGpus):
        yield Text(plain(f"also {', '.join(f'{one.count} × {one.type}' for one in value)}"))
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


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((f"{label} " if label else "", "dim"), plain(text))


def _gpu(gpu: Gpu) -> str:
    about = [gpu.model, f"{gpu.memory_gib:g} GiB" if gpu.memory_gib else "memory not documented"]
    about += [f"weight {gpu.weight:g}"] if gpu.weight != 1 else []
    about += [f"a slice of {gpu.part_of}"] if gpu.part_of else []
    about += [f"at most {gpu.max_per_job} a job"] if gpu.max_per_job else []
    count = f"{gpu.count} × " if gpu.count else ""
    return plain(f"{count}{gpu.type} ({', '.join(about)})")


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


def _sources(cluster: Cluster, width: int) -> list[Text]:
    lines = []
    for name, source in cluster.sources.items():
        read = f", read {source.read_on.isoformat()}" if source.read_on else ""
        commit = f" at {source.commit}" if source.commit else ""
        text = f"{source.document}{commit}{read}"
        lines += flow([Text(name, "bold"), *words(text)], width, Text("  "), hang=4)
    return [Text("Sources", "bold"), *lines]
