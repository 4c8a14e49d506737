"""The figures of a run from its rows: weighted means, exact totals, and means per time bin."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import msgspec
import pyarrow.compute as pc

from teho.explain.bin_means import BinMeans
from teho.explain.block import Bins, Block
from teho.explain.cores import allocated_cores
from teho.explain.energy import EnergyReadings, count_once, weigh
from teho.explain.exception import last_exceptions
from teho.explain.step import absent_hosts, offset_s
from teho.explain.totals import lacking
from teho.model.device import Device
from teho.model.metric import METRICS, Metric, Scope, metrics_of
from teho.model.missing import Missing, Reason
from teho.model.program import Program
from teho.model.run import Node, Run
from teho.model.summary import (
    Figure,
    GpuSummary,
    NodeSummary,
    PartlyKnown,
    Series,
    Stat,
    Summary,
)
from teho.model.watched import WatchedProcess
from teho.process.parallel_map import parallel_map
from teho.store.overview import OVERVIEW_ROWS, read_overview
from teho.store.read import rows_of_node
from teho.store.schema import max_column

__all__ = ["summarise"]

NODE = "node"
_SERIES_VALUES = 300_000
"""Highest number of values of all series, which limits the size of a report of many nodes."""
_BINS_MOST, _BINS_LEAST = 600, 40
_END_BINS, _END_BIN_S, _END_SHARE = 60, 10.0, 1 / 15_000
"""Number of short bins at the end of a run, and their width: a share of the run's time, and at
least `_END_BIN_S`. The rows of a recording become longer with its time too."""
_END_METRICS = frozenset(
    ("job_cpu_s", "job_read_calls_bytes", "job_write_calls_bytes", "net_receive_bytes",
     "net_send_bytes", "disk_read_bytes", "disk_write_bytes", "cpu_iowait_percent",
     "gpu_busy_percent")
)  # fmt: skip
"""Metrics that show whether a run makes progress."""
_ROWS_PER_BIN = 8
"""Smallest number of rows of an overview per bin: with fewer, bins would be less exact."""


def summarise(
    run: Run,
    directory: Path,
    problems: list[str],
    metrics: Sequence[Metric] = METRICS,
    program: Program | None = None,
    processes: Sequence[WatchedProcess] = (),
) -> Summary:
    """Compute the figures of a run from its rows.

    The rows of a node have times since its own start, by its own clock. They are converted to the
    run's time: simultaneous events on two nodes are in one bin.

    Args:
        run: the description of the run.
        directory: folder of the rows.
        problems: sentences about unreadable rows are appended to it.
        metrics: the metrics to read; fewer are faster on large recordings.
        program: what the observed Python processes did.
        processes: all observed processes.
    """
    elapsed_s = run.end.elapsed_s if run.end else _last_moment(run, directory)
    devices = sum(len(node.devices) + 1 for node in run.nodes)
    count = _bin_count(elapsed_s, run.period_s, devices * len(metrics))
    # The last sample is taken just after the program's end: the last bin includes it.
    bins = Bins(count, max(elapsed_s, 1e-3) / count)
    end = _end_bins(run, bins, elapsed_s)
    # Each node returns its problems, so that they are in the order of the nodes.
    of_nodes = parallel_map(lambda node: _node(run, node, directory, bins, end, metrics), run.nodes)
    nodes = tuple(node for node, _ in of_nodes)
    problems.extend(problem for _, found in of_nodes for problem in found)
    cpu_s = _cpu_seconds(run, nodes)
    is_single = len(nodes) == 1 and not absent_hosts(run)
    if run.end is not None and is_single and not isinstance(cpu_s, Missing):
        used = cpu_s / max(elapsed_s, 1e-9)
        nodes = (msgspec.structs.replace(nodes[0], cpu_cores_used=used),)
    return Summary(
        elapsed_s=elapsed_s,
        cpu_s=cpu_s,
        bin_s=bins.width_s,
        bin_count=bins.count,
        end_bin_s=end.width_s if end else 0.0,
        nodes=nodes,
        exceptions=last_exceptions(run, directory, processes),
        program=program,
    )


def _bin_count(elapsed_s: float, period_s: float, series: int) -> int:
    most = max(_BINS_LEAST, min(_BINS_MOST, _SERIES_VALUES // max(1, series)))
    # Most bins shorter than a sample would be empty.
    return max(1, min(most, math.floor(elapsed_s / period_s)))


def _end_bins(run: Run, bins: Bins, elapsed_s: float) -> Bins | None:
    """Return the short bins at the end of a run. Their first one has what was before."""
    width_s = max(_END_BIN_S, _END_SHARE * elapsed_s)
    ended_well = run.end is not None and run.end.exit_code == 0
    if ended_well or bins.width_s <= width_s:
        return None
    return Bins(_END_BINS + 1, width_s, elapsed_s - (_END_BINS + 1) * width_s)


def _last_moment(run: Run, directory: Path) -> float:
    """Return the time of the last row, for a run without a recorded end."""
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
        # wait4 is exact from the first instant; rows include processes that outlived the program.
        return max(waited_s, recorded)
    if reason := lacking(run):
        return reason
    if any(not isinstance(total, float) for total in totals) or not totals:
        return Missing(Reason.UNRECORDED, "not every node recorded its CPU time")
    return recorded


def _node(
    run: Run, node: Node, directory: Path, bins: Bins, end: Bins | None, metrics: Sequence[Metric]
) -> tuple[NodeSummary, list[str]]:
    problems: list[str] = []
    of_end: dict[str, dict[str, Series]] = {}
    # If a bin covers many rows, an overview is exact enough.
    few = bins.count * _ROWS_PER_BIN <= OVERVIEW_ROWS
    overview = read_overview(directory, node.name, metrics) if few else None
    blocks: dict[str, Block] = {}
    for scope in ("node", *(["gpu"] if node.devices else [])):
        if overview:
            rows, figures = overview.rows.get(scope), overview.figures
        else:
            columns = _columns([metric for metric in metrics if metric.scope == scope])
            rows, figures = rows_of_node(directory, node.name, scope, columns, problems), None
        if rows:
            blocks[scope] = Block(rows, bins, offset_s(run, node), figures)
            if end is not None:
                at_end = Block(rows, end, offset_s(run, node), figures)
                of_end |= _end_series(at_end, [one for one in metrics if one.scope == scope])
    host, block = blocks.get("node"), blocks.get("gpu")
    absences = {(absence.device, absence.metric): absence.missing for absence in node.absences}
    stats, totals, series = _figures(host, [NODE], _of_scope("node", metrics), absences)[NODE]
    devices = [device.id for device in node.devices]
    of_gpus = _figures(block, devices, _of_scope("gpu", metrics), absences)
    _partly(run, host, {NODE: stats})
    _partly(run, block, {device: own for device, (own, _, _) in of_gpus.items()})
    allocation = node.allocation
    limit = allocation.memory_limit_bytes
    first_s, last_s = host.extent_s(NODE) if host else (None, None)
    memory = stats.get("job_memory_bytes", Missing(Reason.UNRECORDED))
    found = NodeSummary(
        name=node.name,
        covered_s=0.0 if first_s is None or last_s is None else last_s - first_s,
        first_s=first_s,
        last_s=last_s,
        cores=allocated_cores(run, node),
        stats=stats,
        totals=totals,
        core_mean_percent=host.core_means if host else (),
        cpu_cores_used=_cores_used(totals, host),
        memory_peak_bytes=_largest(memory),
        memory_limit_bytes=Missing(Reason.ABSENT, "no limit known") if limit is None else limit,
        memory_limit_source=allocation.memory_limit_source,
        gpus=count_once(
            [
                _gpu(
                    device, position, of_gpus[device.id], block, bins.width_s,
                    of_end.get(device.id, {}),
                )
                for position, device in enumerate(node.devices)
            ]
        ),
        series=series,
        end_series=of_end.get(NODE, {}),
    )  # fmt: skip
    return found, problems


def _end_series(block: Block, metrics: Sequence[Metric]) -> dict[str, dict[str, Series]]:
    """Return the metrics that show progress, by device, in the short bins at the end."""
    found: dict[str, dict[str, Series]] = {}
    figures = block.figures([metric for metric in metrics if metric.name in _END_METRICS])
    for name, of_devices in figures.items():
        for device, (_, series) in of_devices.items():
            means = [None if math.isnan(value) else value for value in series[1:]]
            found.setdefault(device, {})[name] = means
    return found


def _columns(metrics: Sequence[Metric]) -> list[str]:
    names = ["elapsed_s", "span_s"]
    for metric in metrics:
        names.append(metric.name)
        if metric.kind == "gauge" and not metric.per_core:
            names.append(max_column(metric.name))
    return names


def _of_scope(scope: Scope, metrics: Sequence[Metric]) -> list[Metric]:
    return [metric for metric in metrics_of(scope) if metric in metrics and not metric.per_core]


_Figures = tuple[dict[str, Union[Stat, Missing]], dict[str, Figure], Mapping[str, Series]]
_Drafts = tuple[dict[str, Union[Stat, Missing]], dict[str, Figure], "dict[str, array[float]]"]


def _figures(
    block: Block | None,
    devices: Sequence[str],
    metrics: Sequence[Metric],
    absences: Mapping[tuple[str, str], Missing],
) -> dict[str, _Figures]:
    """Return each device's gauges, counters, and both per bin; a missing figure has a reason."""
    found: dict[str, _Drafts] = {device: ({}, {}, {}) for device in devices}
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    of_metrics = block.figures(metrics) if block else {}
    for metric in metrics:
        is_gauge = metric.kind == "gauge"
        of_devices = of_metrics.get(metric.name, {})
        for device, (stats, totals, series) in found.items():
            missing = absences.get((device, metric.name), nothing)
            value, bins = of_devices.get(device, (missing, None))
            if not is_gauge and missing is not nothing and missing.reason is Reason.UNRECORDED:
                value = missing  # the growth in the gap is not known: the total would be too small
            target: dict[str, Any] = stats if is_gauge else totals
            target[metric.name] = value
            if bins is not None:
                series[metric.name] = bins
    return {
        device: (stats, totals, BinMeans(series))
        for device, (stats, totals, series) in found.items()
    }


def _cores_used(totals: Mapping[str, Figure], host: Block | None) -> Figure:
    cpu_s = totals.get("job_cpu_s", Missing(Reason.UNRECORDED))
    until_s = host.ends_s[-1] if host else 0.0
    if isinstance(cpu_s, Missing):
        return cpu_s
    return cpu_s / until_s if until_s > 0 else Missing(Reason.UNRECORDED)


def _largest(found: Stat | Missing) -> Figure:
    if isinstance(found, PartlyKnown) and found.max is not None:
        return found.max
    return found.max if isinstance(found, Stat) else found


def _partly(
    run: Run, block: Block | None, of_devices: Mapping[str, dict[str, Stat | Missing]]
) -> None:
    """Replace the gauges of which an imported log has only one mean, or only a maximum."""
    if run.imported is None or block is None:
        return
    for name in {name for stats in of_devices.values() for name in stats}:
        peaks = block.peaks(name)
        for device, stats in of_devices.items():
            stat = stats[name]
            if isinstance(stat, Stat) and name in run.imported.means:
                only = "the log has only the mean value"
                stats[name] = PartlyKnown(
                    Reason.UNRECORDED, only, mean=stat.mean, covered_s=stat.covered_s
                )
            elif device in peaks:
                only = "the log has only the highest value"
                first_s, last_s = block.extent_s(device)
                stats[name] = PartlyKnown(
                    Reason.UNRECORDED, only, max=peaks[device], covered_s=last_s - first_s
                )


def _gpu(
    device: Device,
    position: int,
    figures: _Figures,
    block: Block | None,
    bin_s: float,
    end_series: dict[str, Series],
) -> GpuSummary:
    stats, totals, series = figures
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    # In a very short run, a GPU may have no rows.
    place = block.places.get(device.id) if block else None
    first_s, last_s = block.extent_s(device.id) if block and place else (0.0, 0.0)
    seen = EnergyReadings(
        counter=totals.get("gpu_energy_j", nothing),
        power=stats.get("gpu_power_w", nothing),
        rows=block.row_count(device.id) if block and place else 0,
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
        end_series=end_series,
    )
