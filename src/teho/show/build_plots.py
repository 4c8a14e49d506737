"""Every metric over time, as the view holds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from teho.model.metric import METRICS, Metric
from teho.model.summary import Summary
from teho.show.view import Plot, PlotSeries

__all__ = ["plots_of"]

Group = Literal["GPU", "CPU", "Memory", "I/O and network"]

_GROUPS: tuple[tuple[str, Group], ...] = (
    ("gpu_", "GPU"),
    ("cpu_", "CPU"),
    ("load_", "CPU"),
    ("runnable_", "CPU"),
    ("context_", "CPU"),
    ("job_cpu", "CPU"),
    ("job_processes", "CPU"),
    ("job_threads", "CPU"),
    ("job_runnable", "CPU"),
    ("job_memory", "Memory"),
    ("job_resident", "Memory"),
    ("job_shared", "Memory"),
    ("job_cache", "Memory"),
    ("node_", "Memory"),
    ("oom_", "Memory"),
)


def plots_of(summary: Summary) -> tuple[Plot, ...]:
    """Draw every metric that was recorded, a line for each device that has it."""
    return tuple(_plots(summary))


def _plots(summary: Summary) -> Iterable[Plot]:
    middles = [round((i + 0.5) * summary.bin_s, 3) for i in range(summary.bin_count)]
    for metric in METRICS:
        if metric.per_core:
            continue
        series = tuple(_plot_series(summary, metric))
        if series:
            yield Plot(
                key=metric.name,
                title=_plot_title(metric),
                unit=_plot_unit(metric),
                meaning=metric.meaning,
                group=next(
                    (group for start, group in _GROUPS if metric.name.startswith(start)),
                    "I/O and network",
                ),
                elapsed_s=middles,
                series=series,
            )


def _plot_title(metric: Metric) -> str:
    """Name what is drawn: a counter is drawn as its rate, which may have a name of its own."""
    rates = {
        "gpu_energy_j": "GPU power, by the energy counter",
        "job_cpu_s": "Cores used by the program",
    }
    title = rates.get(metric.name, metric.label)
    return title[0].upper() + title[1:]


def _plot_unit(metric: Metric) -> str:
    if metric.kind == "gauge":
        return metric.unit
    return {"J": "W", "s": "cores", "": "per s"}.get(metric.unit, f"{metric.unit}/s")


def _plot_series(summary: Summary, metric: Metric) -> Iterable[PlotSeries]:
    several = len(summary.nodes) > 1
    for node in summary.nodes:
        if metric.scope == "node":
            if metric.name in node.series:
                yield PlotSeries(node.name, _rounded(node.series[metric.name]))
            continue
        for gpu in node.gpus:
            if metric.name in gpu.series:
                label = f"{node.name} GPU {gpu.position}" if several else f"GPU {gpu.position}"
                yield PlotSeries(label, _rounded(gpu.series[metric.name]))


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    """Keep five digits: more cannot be seen, and make the page large."""
    return [None if value is None else float(f"{value:.5g}") for value in values]
