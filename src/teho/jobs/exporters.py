"""The exporters whose series Teho reads: their metrics, labels and units, from `exporters.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.config.settings import expanded, load_settings
from teho.config.toml import did_you_mean, read_toml, to_noun
from teho.errors import InputError
from teho.model.metric import METRICS, METRICS_BY_NAME, Metric

__all__ = [
    "CORES",
    "GPU_MEMORY",
    "JOB_INFO",
    "MEMORY_LIMIT",
    "OF_THE_MEMORY",
    "OWN_MEMORY",
    "Exporter",
    "Known",
    "exporters",
    "known_as",
    "own_name",
]

GPU_MEMORY, MEMORY_LIMIT, CORES = "gpu_memory_total_bytes", "memory_limit_bytes", "cores"
"""Signals that are facts of a GPU or job, not metrics."""
OF_THE_MEMORY = "% of the memory"
OWN_MEMORY = "teho_gpu_memory_total_bytes"
"""Metric with the size of a GPU's memory, and with its model as a label."""
JOB_INFO = "teho_job_info"
"""Metric with the run and the job of a node or GPU."""
_FILE = Path(__file__).with_name("exporters.toml")
_OWN = "teho"
_FACTORS = {
    "%": 1.0, "ratio": 100.0, "W": 1.0, "mW": 1e-3, "J": 1.0, "mJ": 1e-3, "s": 1.0, "ns": 1e-9,
    "bytes": 1.0, "MiB": 2.0**20, "bytes/s": 1.0, "°C": 1.0, "MHz": 1.0, "count": 1.0,
    "cores": 1.0, OF_THE_MEMORY: 0.01,
}  # fmt: skip
"""Unit of an exporter -> factor to the unit of Teho's metric."""
_SIGNALS = frozenset({GPU_MEMORY, MEMORY_LIMIT, CORES, *METRICS_BY_NAME})


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One metric of an exporter."""

    name: str
    unit: str
    signal: str
    labels: dict[str, str] = {}
    if_metric: str = msgspec.field(default="", name="if")
    then: str = ""

    @property
    def factor(self) -> float:
        """Factor to the unit of Teho's metric."""
        return _FACTORS[self.unit]

    def as_then(self) -> _Named:
        """Return the metric with the signal that it has in addition to the metric `if`."""
        return msgspec.structs.replace(self, signal=self.then)


class _Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an exporter says which job has a node or GPU."""

    metric: str
    job: str = ""


class Exporter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One exporter; see the head of `exporters.toml`."""

    title: str
    document: str
    vendor: str = ""
    host: tuple[str, ...]
    gpu: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    job: str = ""
    owner: _Owner | None = None
    has_whole_nodes: bool = False
    """Whether it has all GPUs of a node, and perhaps no job."""
    metrics: tuple[_Named, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all its metrics, without those that name the job."""
        return tuple(dict.fromkeys(one.name for one in self.metrics))


class _Table(msgspec.Struct, frozen=True):
    exporters: dict[str, Exporter]


class Known(NamedTuple):
    """What a series is."""

    exporter: Exporter
    metric: _Named
    place: int
    """Position in the order of preference."""


def own_name(metric: Metric) -> str:
    """Return the name of Teho's own metric in a store, such as `teho_gpu_energy_j_total`."""
    return f"teho_{metric.name}{'_total' if metric.kind == 'counter' else ''}"


def exporters() -> dict[str, Exporter]:
    """Return the exporters in their order; first those of the user's own file.

    Raises:
        InputError: this file cannot be used.
    """
    return _exporters(load_settings().monitoring_exporters)


@cache
def _exporters(path: str) -> dict[str, Exporter]:
    found = _read(_FILE)
    own = tuple(
        _Named(own_name(metric), _own_unit(metric), metric.name)
        for metric in METRICS
        if not metric.per_core
    )
    found[_OWN] = msgspec.structs.replace(found[_OWN], metrics=(*found[_OWN].metrics, *own))
    return {**_read(expanded(path)), **found} if path else found


def _read(path: Path) -> dict[str, Exporter]:
    found = to_noun({"exporters": read_toml(path)}, _Table, path).exporters
    for name, exporter in found.items():
        for metric in exporter.metrics:
            for value, known in ((metric.unit, _FACTORS), (metric.signal, _SIGNALS)):
                if value not in known:
                    raise InputError(
                        f"{path}: {name}, {metric.name}: {value!r} is not known"
                        f"{did_you_mean(value, known)}"
                    )
    return found


def _own_unit(metric: Metric) -> str:
    return metric.unit if metric.unit in _FACTORS else "count"


@cache
def _by_name(path: str) -> Mapping[str, list[Known]]:
    found: dict[str, list[Known]] = {}
    for exporter in _exporters(path).values():
        for place, metric in enumerate(exporter.metrics):
            found.setdefault(metric.name, []).append(Known(exporter, metric, place))
    return found


def known_as(labels: Mapping[str, str]) -> Known | None:
    """Return what the series with these labels is; None if Teho does not know it."""
    by_name = _by_name(load_settings().monitoring_exporters)
    for known in by_name.get(labels.get("__name__", ""), ()):
        if all(labels.get(name) == value for name, value in known.metric.labels.items()):
            return known
    return None
