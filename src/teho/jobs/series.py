"""Turns series of the exporters that clusters have into samples of nodes and GPUs."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from teho.jobs.exporters import CORES, GPU_MEMORY, MEMORY_LIMIT, OF_THE_MEMORY, Known, known_as
from teho.jobs.exporters import exporters as all_exporters
from teho.jobs.log import NODE, Log, NodeFacts, Sample, Value
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason

__all__ = ["Series", "host_of", "jobs_of", "key_of", "read_series"]

_FACTS = frozenset({GPU_MEMORY, MEMORY_LIMIT, CORES})
_DCGM, _DCGM_BLANK = "DCGM_FI_", 2.0**47
"""From this number on, DCGM means that there is no value (`DCGM_FP64_BLANK`, `DCGM_INT64_BLANK`).
Older versions of dcgm-exporter write these numbers; the page of dcgm-exporter shows one of them."""
_CPU_TIME = "job_cpu_s"
"""The CPU time of a job is the sum of its series: some exporters have one for each core."""


class Series(NamedTuple):
    """One series of a store."""

    labels: Mapping[str, str]
    values: list[tuple[float, float]]
    """Time in s since 1970, and value; NaN: no value. In the order of time."""

    def first(self, labels: Iterable[str]) -> str:
        """Return the first of these labels that the series has; empty if it has none."""
        return next((self.labels[one] for one in labels if self.labels.get(one)), "")

    @property
    def last(self) -> float | None:
        """The last number."""
        return next((value for _, value in reversed(self.values) if math.isfinite(value)), None)


class _Placed(NamedTuple):
    """A series of a known metric, and the node and GPU that it is about."""

    series: Series
    known: Known
    host: str
    key: str
    """Empty: it is about the node."""

    @property
    def signal(self) -> str:
        return self.known.metric.signal


def host_of(series: Series, labels: Iterable[str]) -> str:
    """Return the node; the port of its exporter and its domain are left out."""
    return series.first(labels).partition(":")[0].partition(".")[0]


def key_of(series: Series, labels: Iterable[str]) -> str:
    """Return the key of the GPU, or of its MIG instance; empty if the series is about a node."""
    key, instance = series.first(labels), series.labels.get("GPU_I_ID")
    return f"{key}-{instance}" if key and instance else key


def jobs_of(every: Iterable[Series]) -> set[str]:
    """Return the jobs that the labels of the series name."""
    owners = {one.owner.metric: one.owner.job for one in all_exporters().values() if one.owner}
    found = set()
    for series in every:
        name = series.labels.get("__name__", "")
        known = known_as(series.labels)
        label = owners.get(name) or (known.exporter.job if known else "")
        found.add(series.labels.get(label, "") if label and _is_of_job(series) else "")
    return found - {""}


def read_series(every: Sequence[Series], log: Log) -> None:
    """Add the samples and facts of all series that Teho knows to a log.

    Args:
        every: the series, at most of one job.
        log: gets the samples, the facts, and the names that Teho does not know.
    """
    placed = _without_copies(list(_placed(every, log)), log)
    has = {(one.host, one.key, one.known.metric.name) for one in placed}
    placed = [_renamed(one, has) for one in placed]
    job = next(iter(jobs_of(every)), "")
    totals: dict[tuple[str, str], float] = {}
    for one in placed:
        _note(one, log, totals, job)
    found: dict[tuple[str, str, float], dict[str, Value]] = {}
    cpu_times: dict[str, list[Series]] = {}
    for one in placed:
        if one.key:
            _describe(one, log, totals.get((one.host, one.key)))
        if one.signal == _CPU_TIME:
            grown = _increase(one.series, one.known.metric.factor)
            cpu_times.setdefault(one.host, []).append(grown)
        elif one.signal not in _FACTS:
            _take(one, log, totals, found)
    for host, series in cpu_times.items():
        for at_s, value in _sum(series):
            found.setdefault((host, NODE, at_s), {})[_CPU_TIME] = value
    log.samples = [
        Sample.of(at_s, host, key, values)
        for (host, key, at_s), values in sorted(found.items(), key=lambda one: one[0][2])
    ]


def _is_of_job(series: Series) -> bool:
    """Return whether a series is of a whole job, not of one of its steps."""
    return not series.labels.get("step") and not series.labels.get("task")


def _placed(every: Iterable[Series], log: Log) -> Iterator[_Placed]:
    owners = {one.owner.metric for one in all_exporters().values() if one.owner}
    for series in every:
        name = series.labels.get("__name__", "")
        known = known_as(series.labels)
        if known is None or not _is_of_job(series):
            if known is None and name not in owners:
                log.unused.setdefault(name or "a series without a name")
            continue
        key = key_of(series, known.exporter.gpu)
        metric = METRICS_BY_NAME.get(known.metric.signal)
        is_of_node = metric.scope == "node" if metric else known.metric.signal != GPU_MEMORY
        if not is_of_node and not key:
            log.unused.setdefault(f"{name} without a label of the GPU")
            continue
        host = host_of(series, known.exporter.host)
        yield _Placed(_without_blanks(series, name), known, host, "" if is_of_node else key)


def _without_blanks(series: Series, name: str) -> Series:
    """Return a series of DCGM without the numbers that mean that there is no value."""
    if not name.startswith(_DCGM) or all(value < _DCGM_BLANK for _, value in series.values):
        return series
    pairs = [(at_s, value if value < _DCGM_BLANK else math.nan) for at_s, value in series.values]
    return series._replace(values=pairs)


def _without_copies(placed: list[_Placed], log: Log) -> list[_Placed]:
    """Return one series for each signal of a node, core or GPU, in the order of preference.

    A store has the same values twice if two servers ask the same exporter. If a label has changed,
    it has two series that follow each other; these are joined.
    """

    def identity(one: _Placed) -> tuple[object, ...]:
        core = one.series.labels.get("core", "")
        return one.known.place, one.known.metric.name, one.host, one.key, core

    groups: dict[tuple[object, ...], list[_Placed]] = {}
    for one in placed:
        groups.setdefault(identity(one), []).append(one)
    kept, copies = [], 0
    for own in groups.values():
        own.sort(key=lambda one: (-len(one.series.values), sorted(one.series.labels.items())))
        values = own[0].series.values
        for other in own[1:]:
            begin_s, end_s = (values[0][0], values[-1][0]) if values else (math.inf, -math.inf)
            more = [pair for pair in other.series.values if not begin_s <= pair[0] <= end_s]
            copies += len(more) < len(other.series.values)
            values = sorted(values + more)
        kept.append(own[0]._replace(series=own[0].series._replace(values=values)))
    if copies:
        log.notes.append(
            f"{copies} series had values of the same time as another series "
            "of the same metric: Teho used the series with the most values."
        )
    kept.sort(key=lambda one: one.known.place)
    return kept


def _renamed(one: _Placed, has: Container[tuple[str, str, str]]) -> _Placed:
    """Return a series with another signal, if its GPU also has the metric that says so.

    Args:
        one: the series.
        has: host, GPU and metric of all series.
    """
    metric = one.known.metric
    if not metric.if_metric or (one.host, one.key, metric.if_metric) not in has:
        return one
    return one._replace(known=one.known._replace(metric=metric.as_then()))


def _increase(one: Series, factor: float) -> Series:
    """Return how much a counter grew since its first value: a range may begin during the job."""
    total, before = 0.0, None
    found: list[tuple[float, float]] = []
    for at_s, value in one.values:
        if not math.isfinite(value):
            continue
        if before is not None:
            # A counter that is smaller than before was reset.
            total += (value - before if value >= before else value) * factor
        before = value
        found.append((at_s, total))
    return one._replace(values=found)


def _sum(series: Sequence[Series]) -> Iterator[tuple[float, float]]:
    """Yield the sum of counters at each time; a series that has ended keeps its last value."""
    last = [0.0] * len(series)
    events = sorted(
        (at_s, number, value) for number, one in enumerate(series) for at_s, value in one.values
    )
    for at_s, of_time in groupby(events, key=itemgetter(0)):
        for _, number, value in of_time:
            last[number] = value
        yield at_s, math.fsum(last)


def _note(one: _Placed, log: Log, totals: dict[tuple[str, str], float], job: str) -> None:
    """Note the facts in the labels of a series, and in the series that never change."""
    last, factor = one.series.last, one.known.metric.factor
    if one.signal == GPU_MEMORY and last is not None:
        totals.setdefault((one.host, one.key), last * factor)
    if not job:
        return
    node = log.nodes.setdefault(one.host, NodeFacts())
    node.job_id, node.scheduler = job, "slurm"
    if one.signal == MEMORY_LIMIT and last is not None:
        node.memory_limit_bytes = round(last * factor)
    if one.signal == CORES and last is not None:
        node.core_count = round(last)


def _take(
    one: _Placed,
    log: Log,
    totals: Mapping[tuple[str, str], float],
    found: dict[tuple[str, str, float], dict[str, Value]],
) -> None:
    """Add the values of a series to the samples of its node or GPU."""
    series, metric, total = one.series, one.known.metric, totals.get((one.host, one.key))
    factor = metric.factor
    if metric.unit == OF_THE_MEMORY:
        if not total:
            log.unused.setdefault(f"{metric.name} without the size of the memory")
            return
        factor *= total
    for at_s, value in series.values:
        values = found.setdefault((one.host, one.key or NODE, at_s), {})
        if not math.isfinite(value):
            values.setdefault(metric.signal, Missing(Reason.UNRECORDED, "the series has no number"))
        elif not isinstance(values.get(metric.signal), float):
            values[metric.signal] = value * factor


def _describe(one: _Placed, log: Log, total: float | None) -> None:
    series, exporter = one.series, one.known.exporter
    facts = log.gpu(one.host, one.key)
    index = series.first(exporter.index)
    facts.vendor = facts.vendor or series.labels.get("vendor", "") or exporter.vendor
    facts.index = int(index) if index.isdecimal() else facts.index
    facts.uuid = facts.uuid or series.first(("UUID", "uuid"))
    facts.name = facts.name or series.first(exporter.model)
    facts.memory_bytes = round(total) if total else facts.memory_bytes
