"""From rows to figures: means weighted by time, exact totals, and means per time bin."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Union

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teho.model.device import Device
from teho.model.metric import METRICS, Metric, Scope, metrics_of
from teho.model.missing import Missing, Reason
from teho.model.run import Node, Run
from teho.model.summary import Figure, GpuSummary, NodeSummary, Stat, Summary
from teho.store.read import rows_of_devices
from teho.store.schema import max_column

__all__ = ["summarise"]

NODE = "node"
_SERIES_VALUES = 300_000
"""Values of all series together: bounds the size of a report of many nodes."""
_BINS_MOST, _BINS_LEAST = 600, 60

Series = dict[str, list[Union[float, None]]]


def summarise(
    run: Run,
    directory: Path,
    problems: list[str],
    metrics: Sequence[Metric] = METRICS,
) -> Summary:
    """Compute the figures of a run from its rows.

    Args:
        run: what the recording says of itself.
        directory: where its rows lie.
        problems: sentences about rows that did not read are appended here.
        metrics: which metrics to look at; fewer are faster on large recordings.
    """
    elapsed_s = run.end.elapsed_s if run.end else _last_moment(run, directory)
    devices = sum(len(node.devices) + 1 for node in run.nodes)
    count = _bin_count(elapsed_s, run.period_s, devices * len(metrics))
    # The last sample is taken just after the program's end: its bin must take it in.
    bins = _Bins(count, max(elapsed_s, 1e-3) / count)
    nodes = tuple(_node(node, directory, bins, metrics, problems) for node in run.nodes)
    cpu_s = _cpu_seconds(run, nodes)
    if run.end is not None and len(nodes) == 1 and not isinstance(cpu_s, Missing):
        used = cpu_s / max(elapsed_s, 1e-9)
        nodes = (msgspec.structs.replace(nodes[0], cpu_cores_used=used),)
    return Summary(
        elapsed_s=elapsed_s,
        cpu_s=cpu_s,
        bin_s=bins.width_s,
        bin_count=bins.count,
        nodes=nodes,
    )


def _bin_count(elapsed_s: float, period_s: float, series: int) -> int:
    most = max(_BINS_LEAST, min(_BINS_MOST, _SERIES_VALUES // max(1, series)))
    # A bin shorter than a sample would be empty more often than not.
    return max(1, min(most, math.floor(elapsed_s / period_s)))


def _last_moment(run: Run, directory: Path) -> float:
    """Return the last row's time, for a run whose end nobody wrote down."""
    last = 0.0
    for node in run.nodes:
        for _, rows in rows_of_devices(directory, node.name, ["elapsed_s"], []):
            last = max(last, rows["elapsed_s"][-1].as_py() if rows.num_rows else 0.0)
    return last


def _cpu_seconds(run: Run, nodes: Sequence[NodeSummary]) -> Figure:
    totals = [node.totals.get("job_cpu_s") for node in nodes]
    recorded = sum(total for total in totals if isinstance(total, float))
    if run.end is not None and len(nodes) <= 1:
        # wait4 is exact from the program's first instant; rows also see what it left behind.
        return max(run.end.cpu_s, recorded)
    if any(not isinstance(total, float) for total in totals) or not totals:
        return Missing(Reason.UNRECORDED, "not every node recorded its CPU time")
    return recorded


class _Bins:
    """Equal slices of the run's time."""

    def __init__(self, count: int, width_s: float) -> None:
        self.count = count
        self.width_s = width_s

    def edges(self, ends_s: pa.Array, spans_s: pa.Array) -> list[int]:
        """Return, for each bin, the first row whose middle lies in it or after (count + 1,)."""
        middles = pc.subtract(ends_s, pc.multiply(pc.cast(spans_s, pa.float64()), 0.5))
        view = _floats(middles)
        inner = [bisect_left(view, index * self.width_s) for index in range(1, self.count)]
        return [0, *inner, len(middles)]


class _Rows:
    """One device's rows, with what all its columns share."""

    def __init__(self, table: pa.Table, bins: _Bins) -> None:
        self.table = table
        self.span_s = pc.cast(_column(table, "span_s"), pa.float64())
        self.edges = bins.edges(_column(table, "elapsed_s"), self.span_s)
        self.width_s = bins.width_s

    def stat(self, name: str) -> tuple[Stat | None, list[float | None]]:
        """Return a gauge's figures and its mean in each bin (bins,)."""
        values = pc.cast(_column(self.table, name), pa.float64())
        covered = pc.if_else(pc.is_valid(values), self.span_s, 0.0)
        weighted = pc.multiply(pc.fill_null(values, 0.0), self.span_s)
        weight = pc.sum(covered).as_py() or 0.0
        if values.null_count == len(values):
            return None, [None] * (len(self.edges) - 1)
        bounds = pc.min_max(values).as_py()
        if max_column(name) in self.table.column_names:
            largest = pc.max(_column(self.table, max_column(name))).as_py()
            bounds["max"] = max(bounds["max"], -math.inf if largest is None else largest)
        if weight <= 0:
            # Only the last instant was seen, as in a run shorter than a sample.
            mean = pc.mean(values).as_py()
            return Stat(mean, 0.0, bounds["max"], bounds["min"], 0.0), [
                mean,
                *[None] * (len(self.edges) - 2),
            ]
        mean = pc.sum(weighted).as_py() / weight
        square = pc.sum(pc.multiply(weighted, pc.fill_null(values, 0.0))).as_py() / weight
        stat = Stat(
            mean=mean,
            std=math.sqrt(max(0.0, square - mean * mean)),
            max=bounds["max"],
            min=bounds["min"],
            covered_s=weight,
        )
        return stat, self._bin_means(weighted, covered)

    def _bin_means(self, weighted: pa.Array, covered: pa.Array) -> list[float | None]:
        totals, weights = self._at_edges(weighted), self._at_edges(covered)
        return [
            (totals[i + 1] - totals[i]) / (weights[i + 1] - weights[i])
            if weights[i + 1] - weights[i] > 1e-9
            else None
            for i in range(len(totals) - 1)
        ]

    def _at_edges(self, values: pa.Array) -> list[float]:
        """Return the running sum of a column at each edge (bins + 1,)."""
        sums = _floats(pc.cumulative_sum(values))
        return [sums[edge - 1] if edge else 0.0 for edge in self.edges]

    def total(self, name: str) -> tuple[float | None, list[float | None]]:
        """Return how much a counter grew, and its rate per second in each bin (bins,)."""
        values = pc.cast(_column(self.table, name), pa.float64())
        if values.null_count == len(values):
            return None, [None] * (len(self.edges) - 1)
        # A gap in a running total stays flat until it is known again.
        filled = pc.fill_null(pc.fill_null_forward(values), 0.0)
        sums = _floats(filled)
        ends = _floats(_column(self.table, "elapsed_s"))
        # What is counted from the program's start covers the time before the first row too.
        start_s = 0.0 if name.startswith("job_") else ends[0] - self.span_s[0].as_py()
        points = [
            (ends[edge - 1], sums[edge - 1]) if edge else (start_s, 0.0) for edge in self.edges
        ]
        rates = [
            (after - before) / (until_s - since_s) if until_s - since_s > 1e-9 else None
            for (since_s, before), (until_s, after) in pairwise(points)
        ]
        return pc.max(values).as_py(), rates

    @property
    def covered_s(self) -> float:
        """Time from the first row's beginning to the last row's end."""
        ends = _column(self.table, "elapsed_s")
        return float(ends[-1].as_py() - ends[0].as_py() + self.span_s[0].as_py())


def _floats(values: pa.Array) -> memoryview[float]:
    """Look at an array of 64-bit floats in place: plain Python reads and bisects it."""
    return memoryview(values.buffers()[1]).cast("d")[values.offset : values.offset + len(values)]


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _node(
    node: Node,
    directory: Path,
    bins: _Bins,
    metrics: Sequence[Metric],
    problems: list[str],
) -> NodeSummary:
    rows = {
        device: _Rows(table, bins)
        for device, table in rows_of_devices(directory, node.name, _columns(metrics), problems)
        if table.num_rows
    }
    absences = {(absence.device, absence.metric): absence.missing for absence in node.absences}
    own = _of_scope("node", metrics)
    stats, totals, series = _figures(rows.get(NODE), NODE, own, absences)
    core_means = _core_means(rows.get(NODE))
    allocation = node.allocation
    limit = allocation.memory_limit_bytes
    memory = stats.get("job_memory_bytes", Missing(Reason.UNRECORDED))
    return NodeSummary(
        name=node.name,
        covered_s=rows[NODE].covered_s if NODE in rows else 0.0,
        cores=len(node.cores),
        stats=stats,
        totals=totals,
        core_mean_percent=core_means,
        cpu_cores_used=_cores_used(totals, rows.get(NODE)),
        memory_peak_bytes=memory.max if isinstance(memory, Stat) else memory,
        memory_limit_bytes=Missing(Reason.ABSENT, "no limit known") if limit is None else limit,
        memory_limit_source=allocation.memory_limit_source,
        gpus=tuple(
            _gpu(device, position, rows.get(device.id), metrics, absences)
            for position, device in enumerate(node.devices)
        ),
        series=series,
    )


def _columns(metrics: Sequence[Metric]) -> list[str]:
    names = ["elapsed_s", "span_s"]
    for metric in metrics:
        names.append(metric.name)
        if metric.kind == "gauge" and not metric.per_core:
            names.append(max_column(metric.name))
    return names


def _of_scope(scope: Scope, metrics: Sequence[Metric]) -> list[Metric]:
    return [metric for metric in metrics_of(scope) if metric in metrics and not metric.per_core]


def _figures(
    rows: _Rows | None,
    device: str,
    metrics: Sequence[Metric],
    absences: Mapping[tuple[str, str], Missing],
) -> tuple[dict[str, Stat | Missing], dict[str, Figure], Series]:
    """Return gauges' figures, counters' totals, and both per bin; what lacks says why."""
    stats: dict[str, Stat | Missing] = {}
    totals: dict[str, Figure] = {}
    series: Series = {}
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    for metric in metrics:
        missing = absences.get((device, metric.name), nothing)
        target: dict[str, Any] = stats if metric.kind == "gauge" else totals
        if rows is None:
            target[metric.name] = missing
            continue
        value, bins = (rows.stat if metric.kind == "gauge" else rows.total)(metric.name)
        target[metric.name] = missing if value is None else value
        if value is not None:
            series[metric.name] = bins
    return stats, totals, series


def _core_means(rows: _Rows | None) -> tuple[float, ...]:
    if rows is None or "core_busy_percent" not in rows.table.column_names:
        return ()
    lists = _column(rows.table, "core_busy_percent")
    lengths = pc.unique(pc.drop_null(pc.list_value_length(lists))).to_pylist()
    if len(lengths) != 1 or lists.null_count:
        return ()
    cores = lengths[0]
    flat = lists.flatten()
    weight = pc.sum(rows.span_s).as_py()
    if weight <= 0 or not cores:
        return ()
    return tuple(
        pc.sum(pc.multiply(pc.cast(flat[core::cores], pa.float64()), rows.span_s)).as_py() / weight
        for core in range(cores)
    )


def _cores_used(totals: Mapping[str, Figure], rows: _Rows | None) -> Figure:
    cpu_s = totals.get("job_cpu_s", Missing(Reason.UNRECORDED))
    if isinstance(cpu_s, Missing) or rows is None:
        return cpu_s if isinstance(cpu_s, Missing) else Missing(Reason.UNRECORDED)
    until_s = _column(rows.table, "elapsed_s")[-1].as_py()
    return cpu_s / until_s if until_s > 0 else Missing(Reason.UNRECORDED)


def _gpu(
    device: Device,
    position: int,
    rows: _Rows | None,
    metrics: Sequence[Metric],
    absences: Mapping[tuple[str, str], Missing],
) -> GpuSummary:
    stats, totals, series = _figures(rows, device.id, _of_scope("gpu", metrics), absences)
    energy = totals.get("gpu_energy_j", Missing(Reason.UNRECORDED))
    source = "counter"
    power = stats.get("gpu_power_w")
    if isinstance(energy, Missing) and isinstance(power, Stat) and power.covered_s > 0:
        energy, source = power.mean * power.covered_s, "integrated power"
    return GpuSummary(
        device=device,
        position=position,
        stats=stats,
        energy_j=energy,
        energy_source="" if isinstance(energy, Missing) else source,
        series=series,
    )
