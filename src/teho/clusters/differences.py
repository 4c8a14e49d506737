"""Compare a file of the catalogue with the live cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from teho.model.cluster import Cluster, NodeKind, Partition
from teho.units import parse_duration, parse_mib

__all__ = ["Difference", "differences"]

_UPPER = (
    "max_nodes",
    "max_gpus_per_node",
    "max_gpus",
    "max_cores",
    "max_cores_per_node",
    "max_memory",
    "max_jobs",
    "max_running_jobs",
)
_LOWER = ("min_nodes", "min_gpus")
_MEMORY_TOLERANCE_GIB = 0.5
"""Files of the catalogue give memory in whole GiB."""
_NOT_STATED = "not documented"
_NONE_THERE = "none"


class Difference(msgspec.Struct, frozen=True):
    """One fact that is different in the catalogue."""

    place: str
    """Such as `partition gpu`."""
    fact: str
    """Name of the file's key, such as `max_time`."""
    catalogue: str
    live: str
    source: str
    """Source of the catalogue's fact; empty: the catalogue does not have the fact."""


def differences(catalogue: Cluster, live: Cluster) -> tuple[Difference, ...]:
    """Compare the facts that a live scheduler can report.

    A limit that the live partition lacks is not a difference: a plugin of the site, or the user's
    account, may still have it. Partitions are compared by name. A partition that jobs do not name
    is compared with the laxest limits of the live partitions that have its GPUs. Kinds of nodes
    are compared by their GPU type, or by their cores and memory.
    """
    return (*_of_nodes(catalogue, live), *_of_partitions(catalogue, live))


def _of_nodes(catalogue: Cluster, live: Cluster) -> Iterator[Difference]:
    for kind in catalogue.nodes:
        place = f"nodes {kind.name}"
        nearest = _nearest(kind, live.nodes)
        if nearest is None:
            what = f"{kind.gpu.type} GPUs" if kind.gpu else "nodes without GPUs"
            yield Difference(place, "kind", what, _NONE_THERE, kind.source)
            continue
        for fact, ours, theirs in _facts(kind, nearest):
            if not _same(fact, ours, theirs):
                yield Difference(place, fact, _written(ours), _written(theirs), kind.source)
    yield from _of_counts(catalogue, live)
    known = {kind.gpu.type for kind in catalogue.nodes if kind.gpu}
    for kind in live.nodes:
        if kind.gpu and kind.gpu.type not in known:
            yield Difference(f"nodes {kind.name}", "kind", _NOT_STATED, f"{kind.gpu.type} GPUs", "")


def _nearest(kind: NodeKind, among: Sequence[NodeKind]) -> NodeKind | None:
    """Return the live kind that has most in common with a kind of the catalogue."""

    def likeness(one: NodeKind) -> int:
        return sum(_same(*facts) for facts in _facts(kind, one))

    return max(
        (one for one in among if _gpu_type(one) == _gpu_type(kind)), key=likeness, default=None
    )


def _gpu_type(kind: NodeKind) -> str:
    return kind.gpu.type if kind.gpu else ""


def _facts(kind: NodeKind, one: NodeKind) -> Iterator[tuple[str, Any, Any]]:
    """Yield the facts that both kinds have: name, the catalogue's value, the live value."""
    yield "usable_cores", kind.cores_for_jobs, one.cores_for_jobs
    if kind.memory is not None and one.memory is not None:
        yield "memory", kind.memory, one.memory
    if kind.gpu and one.gpu and kind.gpu.count is not None and one.gpu.count is not None:
        yield "gpu.count", kind.gpu.count, one.gpu.count


def _of_counts(catalogue: Cluster, live: Cluster) -> Iterator[Difference]:
    """Compare the number of nodes with the same hardware. A file may split them into more kinds."""
    there = _by_hardware(live)
    for hardware, kinds in _by_hardware(catalogue).items():
        ours, theirs = _total(kinds), _total(there.get(hardware, ()))
        if ours and theirs and ours != theirs:
            names = ", ".join(kind.name for kind in kinds)
            yield Difference(f"nodes {names}", "count", str(ours), str(theirs), kinds[0].source)


def _by_hardware(cluster: Cluster) -> dict[tuple[Any, ...], list[NodeKind]]:
    found: dict[tuple[Any, ...], list[NodeKind]] = {}
    for kind in cluster.nodes:
        if kind.memory is not None:
            gpu = (kind.gpu.type, kind.gpu.count) if kind.gpu else None
            key = (kind.cores_for_jobs, round(parse_mib(kind.memory) / 1024), gpu)
            found.setdefault(key, []).append(kind)
    return found


def _total(kinds: Sequence[NodeKind]) -> int | None:
    """Return the number of nodes; None: the number of one kind is not known."""
    counts = [kind.count for kind in kinds if kind.count is not None]
    return sum(counts) if len(counts) == len(kinds) else None


def _of_partitions(catalogue: Cluster, live: Cluster) -> Iterator[Difference]:
    there = {partition.name for partition in live.partitions}
    groups: dict[tuple[str, frozenset[str]], list[Partition]] = {}
    for partition in catalogue.partitions:
        groups.setdefault((partition.name, _gpu_types(catalogue, partition)), []).append(partition)
    names = [name for name, _ in groups]
    for (name, gpu_types), ours in groups.items():
        if name and name not in there:
            source = ours[0].source
            yield Difference(f"partition {name}", "name", name, _NONE_THERE, source)
        elif names.count(name) == 1 and name:
            same = [one for one in live.partitions if one.name == name]
            yield from _of_limits(ours, same)
        else:
            yield from _of_limits(ours, _covering(name, gpu_types, live))
    if "" in names:
        return
    for partition in live.partitions:
        if partition.name not in names and partition.purpose != "restricted":
            yield Difference(f"partition {partition.name}", "name", _NOT_STATED, partition.name, "")


def _covering(name: str, gpu_types: frozenset[str], live: Cluster) -> list[Partition]:
    """Return the live partitions for all users that fit a partition without a unique name.

    They have its GPUs, and its name if it has one. A site may have two clusters with equal names.
    """
    return [
        one
        for one in live.partitions
        if name in {"", one.name} and one.purpose != "restricted"
        if not (one.needs or one.accounts or one.groups)
        if gpu_types & _gpu_types(live, one)
    ]


def _gpu_types(cluster: Cluster, partition: Partition) -> frozenset[str]:
    """Return the GPU types of a partition's nodes. An empty text means nodes without GPUs."""
    return frozenset(_gpu_type(kind) for kind in cluster.nodes if kind.name in partition.kinds)


def _of_limits(ours: Sequence[Partition], theirs: Sequence[Partition]) -> Iterator[Difference]:
    if not theirs:
        return
    place = f"partition {', '.join(dict.fromkeys(one.title for one in ours))}"
    source = ours[0].source
    for fact in ("max_time", *_UPPER, *_LOWER):
        known, found = _laxest(fact, ours), _laxest(fact, theirs)
        if found is not None and (known is None or not _same(fact, known, found)):
            ours_written = _NOT_STATED if known is None else _written(known)
            yield Difference(place, fact, ours_written, _written(found), source)
    whole, theirs_whole = ({one.exclusive for one in parts} for parts in (ours, theirs))
    if len(whole) == len(theirs_whole) == 1 and whole != theirs_whole:
        ours_written, found = (_written(value) for (value,) in (whole, theirs_whole))
        yield Difference(place, "exclusive", ours_written, found, source)


def _laxest(fact: str, partitions: Sequence[Partition]) -> Any:
    """Return the laxest limit of several partitions; None: one has none, or it is not known."""
    values = [getattr(one, fact) for one in partitions if fact not in one.unknown]
    known: list[Any] = [value for value in values if value is not None]
    if len(known) != len(partitions):
        return None
    if fact == "max_time":
        return max(known, key=parse_duration)
    if fact == "max_memory":
        return max(known, key=parse_mib)
    return min(known) if fact in _LOWER else max(known)


def _same(fact: str, ours: Any, theirs: Any) -> bool:
    if fact == "max_time":
        return parse_duration(ours) == parse_duration(theirs)
    if fact in {"memory", "max_memory"}:
        return abs(parse_mib(ours) - parse_mib(theirs)) <= _MEMORY_TOLERANCE_GIB * 1024
    return bool(ours == theirs)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
