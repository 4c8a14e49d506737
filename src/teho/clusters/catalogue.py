"""Find and read the catalogue's files: Teho's, a site's and the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from teho.config.toml import did_you_mean, read_toml, to_noun
from teho.errors import InputError
from teho.model.cluster import Cluster, Partition
from teho.schedulers.registry import cluster_schedulers
from teho.units import parse_duration, parse_mib

__all__ = ["cluster_files", "load_catalogue", "load_cluster", "read_cluster"]

_MEMORIES_OF_PARTITION = (
    "max_memory",
    "max_memory_per_cpu",
    "default_memory_per_cpu",
    "default_memory_per_gpu",
    "default_memory_per_node",
)


def cluster_files(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return every cluster's file by name. A site's file replaces Teho's, a user's replaces both.

    A site's files are in the directories of `TEHO_CLUSTERS` (separated by colons), and a user's in
    `clusters/` next to the settings.
    """
    config = environment.get("XDG_CONFIG_HOME") or "~/.config"
    folders = [
        Path(str(resources.files("teho.clusters") / "files")),
        *(Path(folder) for folder in environment.get("TEHO_CLUSTERS", "").split(":") if folder),
        Path(config).expanduser() / "teho" / "clusters",
    ]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def load_catalogue(environment: Mapping[str, str] = os.environ) -> dict[str, Cluster]:
    """Read every cluster, by name.

    Raises:
        InputError: a file cannot be read, or has a mistake.
    """
    files = cluster_files(environment)
    return {name: read_cluster(path) for name, path in sorted(files.items())}


def load_cluster(name: str, environment: Mapping[str, str] = os.environ) -> Cluster:
    """Read one cluster by name.

    Raises:
        InputError: the catalogue does not have it, or its file cannot be read.
    """
    files = cluster_files(environment)
    if name not in files:
        raise InputError(
            f"no cluster {name!r} in the catalogue{did_you_mean(name, files)}",
            next_step="`teho clusters` lists the known clusters; `teho clusters discover` writes a "
            "file for a new one",
        )
    return read_cluster(files[name])


def read_cluster(path: Path) -> Cluster:
    """Read a cluster's file and check it.

    Raises:
        InputError: it cannot be read, has an unknown key, contradicts itself, or uses a name that
            it does not define.
    """
    cluster = to_noun(read_toml(path), Cluster, path)
    for found, expected in _contradictions(cluster, path.stem):
        raise InputError(f"{path}: {found}", expected)
    return cluster


def _contradictions(cluster: Cluster, stem: str) -> Iterator[tuple[str, str]]:
    """Yield each contradiction in a file, with what was expected."""
    if cluster.name != stem:
        yield f"name {cluster.name!r}", f"the name of the file, {stem!r}"
    known = cluster_schedulers()
    if cluster.scheduler not in known:
        yield f"unknown scheduler {cluster.scheduler!r}{did_you_mean(cluster.scheduler, known)}", ""
    if cluster.status == "retired" and cluster.retired_on is None and not cluster.notes:
        yield (
            "the status is retired, but retired_on is missing",
            "a date, or a note that says why the date is missing",
        )
    for kind in cluster.nodes:
        _check_memory(kind.memory, f"node kind {kind.name!r}, memory")
    _check_memory(cluster.dialect.default_memory_per_core, "dialect, default_memory_per_core")
    for name, qos in cluster.qos.items():
        if qos.max_time is not None:
            parse_duration(qos.max_time, f"qos {name!r}, max_time")
    types = {kind.gpu.type for kind in cluster.nodes if kind.gpu}
    for share in cluster.shares:
        _check_memory(share.memory, f"share of GPU {share.gpu!r}, memory")
        if share.gpu not in types:
            near = did_you_mean(share.gpu, types)
            yield f"a table [[shares]] names the unknown GPU type {share.gpu!r}{near}", ""
    for partition in cluster.partitions:
        for found, expected in _of_partition(cluster, partition):
            yield f"partition {partition.title!r}: {found}", expected
    for source in _sources(msgspec.to_builtins(cluster)):
        if source.split(" ", 1)[0].rstrip(":;") not in cluster.sources:
            begin = f"a source that begins with one of {sorted(cluster.sources)}"
            yield f"source {source!r}", begin


def _of_partition(cluster: Cluster, partition: Partition) -> Iterator[tuple[str, str]]:
    kinds = {kind.name for kind in cluster.nodes}
    if not partition.title:
        yield (
            "this partition has neither name nor label",
            "a label, which is shown if jobs name no partition",
        )
    for kind in partition.kinds:
        if kind not in kinds:
            yield f"unknown node kind {kind!r}{did_you_mean(kind, kinds)}", ""
    if partition.billing and partition.billing not in cluster.billing:
        yield f"billing {partition.billing!r}", "a table [billing.NAME]"
    for key in ("max_time", "min_time", "advised_min_time"):
        text = getattr(partition, key)
        if text is not None:
            parse_duration(text, f"partition {partition.title!r}, {key}")
    for key in _MEMORIES_OF_PARTITION:
        _check_memory(getattr(partition, key), f"partition {partition.title!r}, {key}")
    for key in partition.unknown:
        if key not in Partition.__struct_fields__:
            yield f"unknown = {key!r}{did_you_mean(key, Partition.__struct_fields__)}", ""
        elif getattr(partition, key) not in {None, "", False}:
            yield f"{key} has a value, but the list `unknown` also names {key}", "one of the two"


def _check_memory(text: str | None, what: str) -> None:
    if text is not None:
        parse_mib(text, what)


def _sources(part: Any) -> Iterator[str]:
    """Yield the source of every table."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "source":
                yield value
            else:
                yield from _sources(value)
    elif isinstance(part, list | tuple):
        for item in part:
            yield from _sources(item)
