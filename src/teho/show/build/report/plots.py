"""The plots of a report: every metric over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from teho.explain.bin_means import BinMeans, mean_of_devices
from teho.explain.moments import line_of
from teho.explain.places import Place, gpus_of, stats_of
from teho.model.document import Plot, PlotSeries
from teho.model.metric import METRICS, METRICS_BY_NAME, Metric
from teho.model.summary import NodeSummary, Stat, Summary
from teho.units import counted

__all__ = ["group_of", "heat_map_of", "plot_title", "plots_of"]

Group = Literal["GPU", "CPU", "Memory", "I/O and network"]

_GROUPS: dict[Group, tuple[str, ...]] = {
    "GPU": ("gpu_",),
    "CPU": (
        "cpu_", "load_", "runnable_", "context_", "job_cpu", "job_processes", "job_threads",
        "job_runnable",
    ),
    "Memory": ("job_memory", "job_resident", "job_shared", "job_cache", "node_", "oom_"),
}  # fmt: skip
"""The beginnings of the names of the metrics in a group; the others are input and output."""
_MOST_LINES = 1000
"""Largest number of GPUs that have their own lines. With 10,000 lines in each plot, a page of HTML
had 114 MB (2026-11-26)."""
_HEAT_BINS = 120
"""Largest number of columns of a heat map; more would be too narrow on a telephone."""


def heat_map_of(summary: Summary) -> Plot | None:
    """Return how busy each GPU was, in few bins; None if there is one GPU or no value.

    If there are very many GPUs, it has a row for each node: its least busy GPU.
    """
    metric = METRICS_BY_NAME["gpu_busy_percent"]
    series = tuple(_plot_series(summary, metric, every=True))
    is_many = len(series) > _MOST_LINES
    if len(series) < 2 or not any(value is not None for one in series for value in one.values):
        return None
    width = math.ceil(summary.bin_count / _HEAT_BINS)
    starts = range(0, summary.bin_count, width)
    series = tuple(
        one
        if width == 1
        else PlotSeries(one.label, [_mean(one.values[start : start + width]) for start in starts])
        for one in series
    )
    return Plot(
        key=metric.name,
        title="Every node over time" if is_many else "Every GPU over time",
        unit=metric.unit,
        meaning=f"the least busy GPU of each node: {metric.meaning}" if is_many else metric.meaning,
        group="GPU",
        elapsed_s=[
            round((start + min(start + width, summary.bin_count)) / 2 * summary.bin_s, 3)
            for start in starts
        ],
        series=tuple(_least_of_nodes(summary, series)) if is_many else series,
    )


def _least_of_nodes(summary: Summary, gpus: Sequence[PlotSeries]) -> Iterable[PlotSeries]:
    """Yield a line for each node that has GPUs: in each bin, the smallest known value.

    Args:
        summary: of the run.
        gpus: a line for each GPU, in the order of the nodes.
    """
    begin = 0
    for node in summary.nodes:
        lines, begin = gpus[begin : begin + len(node.gpus)], begin + len(node.gpus)
        if lines:
            bins = zip(*(line.values for line in lines), strict=True)
            yield PlotSeries(node.name, [_least(values) for values in bins])


def _least(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _rounded(math.fsum(known) / len(known)) if known else None


def _means_of_gpus(node: NodeSummary) -> dict[str, tuple[int, list[float | None]]]:
    """Return the number of a node's GPUs that recorded a metric, and their mean in each bin."""
    devices = [gpu.series for gpu in node.gpus]
    packed = [one for one in devices if isinstance(one, BinMeans)]
    # With 10,000 GPUs there are more than a million bins.
    if packed and len(packed) == len(devices) and (means := mean_of_devices(packed)) is not None:
        return {metric: (len(devices), values) for metric, values in means.items()}
    found = {}
    for metric in dict.fromkeys(name for one in devices for name in one):
        lines = [one[metric] for one in devices if metric in one]
        found[metric] = len(lines), [_mean(values) for values in zip(*lines, strict=True)]
    return found


def plots_of(summary: Summary) -> Iterable[Plot]:
    """Yield a plot for every metric that was recorded, with a line for each device."""
    middles = [round((i + 0.5) * summary.bin_s, 3) for i in range(summary.bin_count)]
    is_many = len(summary.gpus) > _MOST_LINES
    means = [_means_of_gpus(node) for node in summary.nodes] if is_many else []
    for metric in METRICS:
        series: tuple[PlotSeries, ...] = ()
        if is_many and metric.scope == "gpu":
            series = tuple(_node_lines(summary, metric, means))
        elif not metric.per_core:
            series = tuple(_plot_series(summary, metric))
        if series:
            yield Plot(
                key=metric.name,
                title=plot_title(metric),
                unit=metric.shown_unit,
                meaning=metric.meaning,
                group=group_of(metric),
                elapsed_s=middles,
                series=series,
            )


def group_of(metric: Metric) -> Group:
    """Return the group of plots that a metric belongs to."""
    groups = (group for group, starts in _GROUPS.items() if metric.name.startswith(starts))
    return next(groups, "I/O and network")


def plot_title(metric: Metric) -> str:
    """Return the title of a plot; a counter is drawn as its rate."""
    rates = {
        "gpu_energy_j": "GPU power, from the energy counter",
        "job_cpu_s": "Cores used by the program",
    }
    title = rates.get(metric.name, metric.label)
    return title[0].upper() + title[1:]


def _plot_series(summary: Summary, metric: Metric, *, every: bool = False) -> Iterable[PlotSeries]:
    """Yield a line for each device that recorded a metric; with `every`, for all devices."""
    nothing: list[float | None] = [None] * summary.bin_count
    several = len(summary.nodes) > 1
    for node in summary.nodes:
        if metric.scope == "node":
            if metric.name in node.series:
                yield PlotSeries(node.name, node.series[metric.name], *_extent(node, metric))
            continue
        for place in gpus_of(node):
            series = place.gpu.series
            if every or metric.name in series:
                label = line_of(place, several=several)
                values = series.get(metric.name, nothing)
                yield PlotSeries(label, values, *_extent(place, metric))


def _node_lines(
    summary: Summary,
    metric: Metric,
    means: Sequence[dict[str, tuple[int, list[float | None]]]],
) -> Iterable[PlotSeries]:
    """Yield a line for each node, with the mean of its GPUs: there are very many GPUs."""
    for node, of_metrics in zip(summary.nodes, means, strict=True):
        if metric.name in of_metrics:
            count, values = of_metrics[metric.name]
            yield PlotSeries(f"{node.name}, mean of {counted(count, 'GPU')}", values)


def _extent(place: Place, metric: Metric) -> tuple[float | None, float | None, float | None]:
    """Return the mean, the smallest and the largest value, as far as all samples give them."""
    stat = stats_of(place).get(metric.name)
    if isinstance(stat, Stat):
        return _rounded(stat.mean), _rounded(stat.min), _rounded(stat.max)
    total = place.totals.get(metric.name) if isinstance(place, NodeSummary) else None
    if isinstance(place, NodeSummary) and isinstance(total, float) and place.last_s:
        # A counter of the job starts with the program, and the others with the first row.
        begin_s = 0.0 if metric.name.startswith("job_") else place.first_s or 0.0
        if place.last_s > begin_s:
            return _rounded(total / (place.last_s - begin_s)), None, None
    return None, None, None


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
