"""A capture of Nsight Systems: the database that `nsys export --type sqlite` writes.

`GPU_METRICS` has the samples, at up to 200,000 per second. `TARGET_INFO_GPU_METRICS` has the names
of the metrics. The lowest 8 bits of `typeId` are the number of the GPU. A capture without these
tables has the times of the kernels, if it traced CUDA: `CUPTI_ACTIVITY_KIND_KERNEL`, and for CUDA
graphs that were traced as a whole, `CUPTI_ACTIVITY_KIND_GRAPH_TRACE`. Times are in ns since the
begin of the capture, which is in `TARGET_INFO_SESSION_START_TIME`. Source: NVIDIA's Post-Collection
Analysis Guide, "SQLite Schema Reference", and the exports of 2023 to 2026.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from teho.errors import InputError
from teho.jobs.importer import Importer
from teho.jobs.kernel_times import KERNELS_NOTE, Span, add_busy
from teho.jobs.log import Log, Sample, Source, Value
from teho.jobs.read_source import SQLITE
from teho.store.layout import safe_name

if TYPE_CHECKING:
    import sqlite3

__all__ = ["IMPORTER"]

_TOOL = "Nsight Systems"
_PER_CENT = " [Throughput %]"
_METRICS = {
    "GR Active": "gpu_busy_percent",
    "GPU Active": "gpu_busy_percent",
    "SM Active": "gpu_sm_active_percent",
    "SMs Active": "gpu_sm_active_percent",
    "Tensor Active": "gpu_tensor_percent",
    "Compute Warps in Flight": "gpu_sm_occupancy_percent",
    "DRAM Read Bandwidth": "gpu_dram_percent",
    "DRAM Write Bandwidth": "gpu_dram_percent",
}
"""Share of the highest possible value, without the unit in the name."""
_BARE = frozenset({"GR Active", "SM Active", "SMs Active", "Tensor Active"})
"""Older versions write these names without a unit."""
_CLOCK, _CLOCK_METRIC = "GPC Clock Frequency [MHz]", "gpu_sm_clock_mhz"
_HZ_FROM = 1e5
"""The name says MHz, but the values are in Hz. No clock has so many MHz."""
_UNSIGNED = 0xFFFFFFFF
"""The export writes these Hz as 32 bits with a sign: more than 2,147 MHz are negative numbers."""
_BIN_NS = 100_000_000
"""Teho takes the mean of all samples in 0.1 s: a capture has up to 200,000 samples per second."""
_TABLES = ("GPU_METRICS", "TARGET_INFO_GPU_METRICS")
_KERNELS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "SELECT deviceId, start / 1e9, end / 1e9 FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE end >= start"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "SELECT deviceId, start / 1e9, end / 1e9 FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE "
        "WHERE end >= start"
    ),
}
_COPIES = {
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "SELECT deviceId, start / 1e9, end / 1e9 FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE end >= start"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "SELECT deviceId, start / 1e9, end / 1e9 FROM CUPTI_ACTIVITY_KIND_MEMSET WHERE end >= start"
    ),
}
"""Table of operations -> the question for GPU, begin and end of each, in s."""
_MOST_PERCENT = 100.0
_END_NOTE = (
    "The log has no date. Teho assumes that the capture ended when the file was last changed."
)
_BUSY_NOTE = (
    "Nsight Systems has no GPU busy. Teho shows GR Active in its place: the share of time in which "
    "the engine for graphics and computing was active."
)


class NsightSystems(Importer):
    """One database of one capture."""

    title = "Nsight Systems"
    written_by = "nsys profile, best with --gpu-metrics-devices=all; then nsys export --type sqlite"
    place = 70

    def recognises(self, source: Source) -> bool:
        """Return whether the file is a database of SQLite."""
        return source.text.startswith(SQLITE)

    def advice(self, source: Source) -> str:
        """Return how to make a database from a report."""
        if source.path.suffix not in {".nsys-rep", ".qdrep"}:
            return ""
        return f"`nsys export --type sqlite {source.path}` writes the file that Teho reads"

    def read(self, source: Source) -> Log:
        """Read the means of all metrics that Teho has, or GPU busy from the times of the kernels.

        Raises:
            InputError: the database is damaged, or has neither GPU metrics nor kernels.
        """
        try:
            import sqlite3
        except ImportError:  # some clusters build Python without it
            raise InputError(
                f"{source.path} is a database, and this Python has no module sqlite3",
                next_step="install Teho with another Python",
            ) from None
        address = f"{source.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
                return _read(database, source)
        except sqlite3.Error as error:
            raise InputError(
                f"{source.path}: {error}",
                "a complete database of `nsys export --type sqlite`",
                "export the report again",
            ) from error


class _Named(NamedTuple):
    """A metric of a GPU in the database."""

    type_id: int
    metric_id: int
    metric: str
    """Teho's name."""


def _read(database: sqlite3.Connection, source: Source) -> Log:
    present = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    log = Log(tool=_TOOL, is_whole=True, period_s=_BIN_NS / 1e9)
    host = _host(database) if "TARGET_INFO_SYSTEM_ENV" in present else ""
    begin_s = None
    if "TARGET_INFO_SESSION_START_TIME" in present:
        row = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
        begin_s = row[0] / 1e9 if row and row[0] else None
    if present.issuperset(_TABLES):
        _add_metrics(database, source, log, host, begin_s)
    elif not present.isdisjoint(_KERNELS):
        _add_kernels(database, source, log, host, begin_s, present)
    else:
        raise _no_metrics(source, "has no table GPU_METRICS, and no times of kernels")
    _add_facts(database, log, host, present)
    return log


def _add_metrics(
    database: sqlite3.Connection, source: Source, log: Log, host: str, begin_s: float | None
) -> None:
    """Add the means of all metrics that Teho has, in steps of 0.1 s."""
    named = list(_named(database, log))
    if not named:
        raise _no_metrics(source, "has no metric that Teho knows")
    found: dict[tuple[int, int], dict[str, float]] = {}
    for one in named:
        for bin_, value in _means(database, one):
            values = found.setdefault((bin_, one.type_id & 0xFF), {})
            if one.metric == _CLOCK_METRIC:
                values[one.metric] = value / 1e6 if value >= _HZ_FROM else value
            else:
                # Reads and writes add up to the use of the memory.
                values[one.metric] = min(_MOST_PERCENT, values.get(one.metric, 0.0) + value)
    for (bin_, gpu), values in sorted(found.items()):
        at_s = None if begin_s is None else begin_s + (bin_ + 1) * _BIN_NS / 1e9
        cells: dict[str, Value] = {**values}
        log.samples.append(Sample.of(at_s, host, str(gpu), cells))
    if not log.samples:
        raise _no_metrics(source, "has no samples of the GPUs")
    if any("gpu_busy_percent" in one.metrics for one in log.samples):
        log.notes.append(_BUSY_NOTE)


def _add_kernels(
    database: sqlite3.Connection,
    source: Source,
    log: Log,
    host: str,
    begin_s: float | None,
    present: set[str],
) -> None:
    """Add the GPU busy, from the times of the kernels.

    Without the begin of the capture, the last change of the file is its end.
    """
    kernels: dict[str, list[Span]] = {}
    first_s, last_s = float("inf"), 0.0
    for table, question in {**_KERNELS, **_COPIES}.items():
        for device, start_s, end_s in database.execute(question) if table in present else ():
            spans = kernels.setdefault(str(device), [])
            if table in _KERNELS:
                spans.append((start_s, end_s))
            first_s, last_s = min(first_s, start_s), max(last_s, end_s)
    if not any(kernels.values()):
        raise _no_metrics(source, "has no GPU metrics and no kernels")
    if begin_s is None:
        begin_s = source.changed_s - last_s
        log.notes.append(_END_NOTE)
    add_busy(log, kernels, (first_s, last_s), begin_s=begin_s, host=host)
    log.notes.append(KERNELS_NOTE)


def _no_metrics(source: Source, what: str) -> InputError:
    return InputError(
        f"{source.path} {what}",
        "GPU metrics (--gpu-metrics-devices) or kernels (--trace=cuda)",
        "`nsys profile --gpu-metrics-devices=all …`, and then `nsys export --type sqlite FILE`",
    )


def _named(database: sqlite3.Connection, log: Log) -> Iterator[_Named]:
    """Yield the metrics that Teho has; the names of others are kept."""
    rows = database.execute("SELECT typeId, metricId, metricName FROM TARGET_INFO_GPU_METRICS")
    for type_id, metric_id, text in rows.fetchall():
        name = str(text)
        bare = name.removesuffix(_PER_CENT)
        metric = _METRICS.get(bare, "") if name != bare or bare in _BARE else ""
        metric = _CLOCK_METRIC if name == _CLOCK else metric
        if metric:
            yield _Named(type_id, metric_id, metric)
        else:
            log.unused.setdefault(name)


def _means(database: sqlite3.Connection, one: _Named) -> Iterator[tuple[int, float]]:
    """Yield the mean of a metric in each step of time, in the order of time."""
    yield from database.execute(
        "SELECT timestamp / ? AS bin, avg(CASE WHEN ? THEN value & ? ELSE value END) "
        "FROM GPU_METRICS "
        "WHERE typeId = ? AND metricId = ? AND timestamp >= 0 GROUP BY bin ORDER BY bin",
        (_BIN_NS, one.metric == _CLOCK_METRIC, _UNSIGNED, one.type_id, one.metric_id),
    )


def _host(database: sqlite3.Connection) -> str:
    row = database.execute(
        "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'"
    ).fetchone()
    name = str(row[0]) if row else ""
    return name if safe_name(name) == name else ""


def _add_facts(database: sqlite3.Connection, log: Log, host: str, present: set[str]) -> None:
    """Add model and memory of the GPUs, if all of them are equal.

    The database does not say which number of a metric is which GPU of the machine.
    """
    models: set[tuple[str, int]] = set()
    if "TARGET_INFO_GPU" in present:
        models.update(database.execute("SELECT name, totalMemory FROM TARGET_INFO_GPU").fetchall())
    for key in {sample.device for sample in log.samples}:
        facts = log.gpu(host, key)
        facts.index, facts.vendor = int(key) if key.isdecimal() else None, "nvidia"
        if len(models) == 1:
            ((facts.name, size),) = models
            facts.memory_bytes = size or None


IMPORTER = NsightSystems
