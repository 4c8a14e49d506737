"""From rows to figures: means weighted by time, exact totals, and means per time bin."""

from __future__ import annotations

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Union

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teho.explain.columns import Sums, bounds_of, column_of, element_means, floats, quotients
from teho.explain.energy import Seen, count_once, weigh
from teho.explain.step import absent_hosts, offset_s
from teho.explain.totals import lacking
from teho.model.device import Device
from teho.model.metric import METRICS, Metric, Scope, metrics_of
from teho.model.missing import Missing, Reason
from teho.model.run import Node, Run
from teho.model.summary import Figure, GpuSummary, NodeSummary, Stat, Summary
from teho.store.read import NodeRows, rows_of_node
from teho.store.schema import max_column

__all__ = ["summarise"]

NODE = "node"
_SERIES_VALUES = 300_000
"""Values of all series together: bounds the size of a report of many nodes."""
_BINS_MOST, _BINS_LEAST = 600, 48

Series = dict[str, list[Union[float, None]]]


def summarise(
    run: Run,
    directory: Path,
    problems: list[str],
    metrics: Sequence[Metric] = METRICS,
) -> Summary:
    """Compute the figures of a run from its rows.

    Each node counts its rows' time from its own start, by its own clock; here all of them stand
    on the run's time, so that what happens at once on two nodes falls into one bin.

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
    # Unpacking and adding up go on outside the interpreter's lock: a second thread is worth it.
    # Each node has a list of problems of its own, so that their order is the nodes'.
    of_nodes: list[list[str]] = [[] for _ in run.nodes]
    with ThreadPoolExecutor(min(4, len(os.sched_getaffinity(0)))) as pool:
        nodes = tuple(
            pool.map(
                lambda node, own: _node(node, directory, bins, offset_s(run, node), metrics, own),
                run.nodes,
                of_nodes,
            )
        )
    problems.extend(problem for own in of_nodes for problem in own)
    cpu_s = _cpu_seconds(run, nodes)
    alone = len(nodes) == 1 and not absent_hosts(run)
    if run.end is not None and alone and not isinstance(cpu_s, Missing):
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
        rows = rows_of_node(directory, node.name, NODE, ["elapsed_s"], [])
        if rows is not None:
            moment = pc.max(rows.table["elapsed_s"]).as_py() + offset_s(run, node)
            last = max(last, moment)
    return last


def _cpu_seconds(run: Run, nodes: Sequence[NodeSummary]) -> Figure:
    totals = [node.totals.get("job_cpu_s") for node in nodes]
    recorded = sum(total for total in totals if isinstance(total, float))
    waited_s = run.end.cpu_s if run.end is not None else None
    if waited_s is not None and (len(nodes) <= 1 or run.has_tasks):
        # wait4 is exact from the program's first instant; rows also see what it left behind.
        return max(waited_s, recorded)
    if reason := lacking(run):
        return reason
    if any(not isinstance(total, float) for total in totals) or not totals:
        return Missing(Reason.UNRECORDED, "not every node recorded its CPU time")
    return recorded


class _Bins:
    """Equal slices of the run's time."""

    def __init__(self, count: int, width_s: float) -> None:
        self.count = count
        self.width_s = width_s

    def edges(self, middles_s: memoryview[float], place: slice, offset_s: float) -> list[int]:
        """Return, for each bin, a device's first row whose middle lies in it or after (count + 1,).

        Args:
            middles_s: the middle of each row's span.
            place: the device's rows among them.
            offset_s: from the node's time to the run's.
        """
        first, last = place.start, place.stop
        inner = [
            bisect_left(middles_s, index * self.width_s - offset_s, first, last)
            for index in range(1, self.count)
        ]
        return [first, *inner, last]


class _Block:
    """The rows of all devices of one kind on a node.

    Each column is worked on once for all devices; a device's share is then the
    difference of two running sums.
    """

    def __init__(self, rows: NodeRows, bins: _Bins, offset_s: float) -> None:
        self.table, self.places = rows
        self._offset_s = offset_s
        self.ends_s = floats(column_of(self.table, "elapsed_s"))
        self.span = pc.cast(column_of(self.table, "span_s"), pa.float64())
        self.spans_s = floats(self.span)
        self._covered = Sums(self.span)
        middles = floats(
            pc.subtract(column_of(self.table, "elapsed_s"), pc.multiply(self.span, 0.5))
        )
        self._edges = {
            device: bins.edges(middles, place, offset_s) for device, place in self.places.items()
        }

    def gauge(self, name: str) -> dict[str, tuple[Stat, list[float | None]]]:
        """Return a gauge's figures and its mean in each bin (bins,), for devices that have any."""
        column = column_of(self.table, name)
        if column.null_count == len(column):
            return {}
        values = pc.cast(column, pa.float64())
        covered, span = self._covered, self.span
        if values.null_count:
            covered = Sums(pc.if_else(pc.is_valid(values), span, 0.0))
            values = pc.fill_null(values, 0.0)
        weighted = pc.multiply(values, span)
        totals, squares = Sums(weighted), pc.multiply(weighted, values)
        bounds = bounds_of(column)
        largest = bounds
        if max_column(name) in self.table.column_names:
            largest = bounds_of(column_of(self.table, max_column(name)))
        figures = {}
        for device, place in self.places.items():
            low, high = bounds(place)
            if low is None or high is None:
                continue
            if largest is not bounds:
                sampled = largest(place)[1]
                high = high if sampled is None else max(high, sampled)
            weight = covered.between(place.start, place.stop)
            bin_means = quotients(totals.at(self._edges[device]), covered.at(self._edges[device]))
            if weight <= 0:
                # Only one instant was seen, as in a run shorter than a sample.
                bin_means[bisect_right(self._edges[device], place.start) - 1] = high
                figures[device] = Stat(high, 0.0, high, low, 0.0), bin_means
                continue
            mean = totals.between(place.start, place.stop) / weight
            square = pc.sum(squares[place]).as_py() / weight
            std = math.sqrt(max(0.0, square - mean * mean))
            figures[device] = Stat(mean, std, high, low, weight), bin_means
        return figures

    def counter(self, name: str) -> dict[str, tuple[float, list[float | None]]]:
        """Return how much a counter grew, and its rate per second in each bin (bins,)."""
        column = pc.cast(column_of(self.table, name), pa.float64())
        figures: dict[str, tuple[float, list[float | None]]] = {}
        for device, place in self.places.items():
            values = column[place]
            if values.null_count == len(values):
                continue
            if values.null_count:
                # A gap in a running total stays flat until it is known again.
                values = pc.fill_null(pc.fill_null_forward(values), 0.0)
            sums = floats(values)
            ends = self.ends_s[place]
            # What is counted from the program's start covers the time before the first row too.
            start_s = 0.0 if name.startswith("job_") else ends[0] - self.spans_s[place.start]
            edges = [edge - place.start for edge in self._edges[device]]
            times = [ends[edge - 1] if edge else start_s for edge in edges]
            rates = quotients([sums[edge - 1] if edge else 0.0 for edge in edges], times)
            figures[device] = max(sums[-1], 0.0), rates
        return figures

    @cached_property
    def lowest_unused_w(self) -> dict[str, float]:
        """The least power of each device while no process of the job held it, where known."""
        names = ("gpu_power_w", "gpu_job_processes")
        if not set(names) <= set(self.table.column_names):
            return {}
        power, users = (column_of(self.table, name) for name in names)
        # The mean of many samples may be rounded to 0, their maximum is not.
        most = max_column("gpu_job_processes")
        if most in self.table.column_names:
            users = pc.coalesce(column_of(self.table, most), users)
        unused = pc.fill_null(pc.equal(users, 0), False)
        bounds = bounds_of(pc.if_else(unused, power, None))
        least = {device: bounds(place)[0] for device, place in self.places.items()}
        return {device: power_w for device, power_w in least.items() if power_w is not None}

    def extent_s(self, device: str) -> tuple[float, float]:
        """Return where a device's first row begins and its last one ends, on the run's time."""
        place = self.places[device]
        first, last = place.start, place.stop - 1
        begin_s = self.ends_s[first] - self.spans_s[first]
        return begin_s + self._offset_s, self.ends_s[last] + self._offset_s


def _node(
    node: Node,
    directory: Path,
    bins: _Bins,
    offset_s: float,
    metrics: Sequence[Metric],
    problems: list[str],
) -> NodeSummary:
    of_host = [metric for metric in metrics if metric.scope == "node"]
    rows = rows_of_node(directory, node.name, NODE, _columns(of_host), problems)
    host = _Block(rows, bins, offset_s) if rows else None
    of_gpu = [metric for metric in metrics if metric.scope == "gpu"]
    rows = None
    if node.devices:
        rows = rows_of_node(directory, node.name, "gpu", _columns(of_gpu), problems)
    block = _Block(rows, bins, offset_s) if rows else None
    absences = {(absence.device, absence.metric): absence.missing for absence in node.absences}
    own = _of_scope("node", metrics)
    stats, totals, series = _figures(host, [NODE], own, absences)[NODE]
    of_gpus = _figures(
        block, [device.id for device in node.devices], _of_scope("gpu", metrics), absences
    )
    core_means = _core_means(host)
    allocation = node.allocation
    limit = allocation.memory_limit_bytes
    first_s, last_s = host.extent_s(NODE) if host else (None, None)
    memory = stats.get("job_memory_bytes", Missing(Reason.UNRECORDED))
    return NodeSummary(
        name=node.name,
        covered_s=0.0 if first_s is None or last_s is None else last_s - first_s,
        first_s=first_s,
        last_s=last_s,
        cores=len(node.cores),
        stats=stats,
        totals=totals,
        core_mean_percent=core_means,
        cpu_cores_used=_cores_used(totals, host),
        memory_peak_bytes=memory.max if isinstance(memory, Stat) else memory,
        memory_limit_bytes=Missing(Reason.ABSENT, "no limit known") if limit is None else limit,
        memory_limit_source=allocation.memory_limit_source,
        gpus=count_once(
            [
                _gpu(device, position, of_gpus[device.id], block, bins.width_s)
                for position, device in enumerate(node.devices)
            ]
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


_Figures = tuple[dict[str, Union[Stat, Missing]], dict[str, Figure], Series]


def _figures(
    block: _Block | None,
    devices: Sequence[str],
    metrics: Sequence[Metric],
    absences: Mapping[tuple[str, str], Missing],
) -> dict[str, _Figures]:
    """Return each device's gauges, counters, and both per bin; what lacks says why."""
    found: dict[str, _Figures] = {device: ({}, {}, {}) for device in devices}
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    for metric in metrics:
        is_gauge = metric.kind == "gauge"
        of_devices: Mapping[str, tuple[Any, list[float | None]]] = {}
        if block is not None:
            of_devices = (block.gauge if is_gauge else block.counter)(metric.name)
        for device, (stats, totals, series) in found.items():
            missing = absences.get((device, metric.name), nothing)
            value, bins = of_devices.get(device, (missing, None))
            if not is_gauge and missing is not nothing and missing.reason is Reason.UNRECORDED:
                value = missing  # what a counter grew by meanwhile nobody knows: no smaller total
            target: dict[str, Any] = stats if is_gauge else totals
            target[metric.name] = value
            if bins is not None:
                series[metric.name] = bins
    return found


def _core_means(host: _Block | None) -> tuple[float, ...]:
    if host is None or "core_busy_percent" not in host.table.column_names:
        return ()
    lists = column_of(host.table, "core_busy_percent")
    spans = host.span
    if lists.null_count:
        known = pc.is_valid(lists)
        spans, lists = spans.filter(known), lists.filter(known)
    # Cores of tasks that came late are at the lists' end, and lack in those before.
    return element_means(lists, spans)


def _cores_used(totals: Mapping[str, Figure], host: _Block | None) -> Figure:
    cpu_s = totals.get("job_cpu_s", Missing(Reason.UNRECORDED))
    if isinstance(cpu_s, Missing) or host is None:
        return cpu_s if isinstance(cpu_s, Missing) else Missing(Reason.UNRECORDED)
    until_s = host.ends_s[-1]
    return cpu_s / until_s if until_s > 0 else Missing(Reason.UNRECORDED)


def _gpu(
    device: Device, position: int, figures: _Figures, block: _Block | None, bin_s: float
) -> GpuSummary:
    stats, totals, series = figures
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    # A GPU without rows (a run too short to be sampled) has no place.
    place = block.places.get(device.id) if block else None
    first_s, last_s = block.extent_s(device.id) if block and place else (0.0, 0.0)
    seen = Seen(
        counter=totals.get("gpu_energy_j", nothing),
        power=stats.get("gpu_power_w", nothing),
        rows=place.stop - place.start if place else 0,
        elapsed_s=last_s - first_s,
        unused_w=block.lowest_unused_w.get(device.id) if block else None,
        counter_bins=series.get("gpu_energy_j", []),
        power_bins=series.get("gpu_power_w", []),
        bin_s=bin_s,
    )
    energy_j, source, energy = weigh(device, seen)
    return GpuSummary(
        device=device,
        position=position,
        stats=stats,
        energy_j=energy_j,
        energy_source=source,
        energy=energy,
        series=series,
    )
