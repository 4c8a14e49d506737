"""Plots of several runs in one picture: one line for each run, over the time since its start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Union

from teho.model.document import Plot, PlotSeries
from teho.model.metric import METRICS_BY_NAME, Metric
from teho.model.summary import Series, Summary
from teho.show.build.report.plots import group_of, plot_title

__all__ = ["compared_plots"]

_MEANS = (
    "gpu_busy_percent",
    "gpu_sm_active_percent",
    "gpu_memory_used_bytes",
    "gpu_power_w",
)
"""Metrics of GPUs: a line is the mean of all GPUs of a run."""
_SUMS = ("job_cpu_s", "job_memory_bytes", "job_read_bytes", "job_write_bytes")
"""Metrics of nodes: a line is the sum of all nodes of a run."""
_CELLS = 400
"""Points of each line."""

_Value = Union[float, None]


def compared_plots(names: Sequence[str], summaries: Sequence[Summary]) -> Iterator[Plot]:
    """Yield a plot for each metric that at least one of the runs recorded.

    Args:
        names: of the runs.
        summaries: their figures, in the same order.
    """
    longest_s = max(one.bin_s * one.bin_count for one in summaries)
    cell_s = longest_s / _CELLS
    if cell_s <= 0:
        return
    for metrics, ending, combined in (
        (_MEANS, "mean of all GPUs", _mean),
        (_SUMS, "all nodes", _sum),
    ):
        for metric in (METRICS_BY_NAME[name] for name in metrics):
            lines = [_line(one, metric, combined, cell_s) for one in summaries]
            if any(value is not None for line in lines for value in line):
                yield Plot(
                    key=metric.name,
                    title=f"{plot_title(metric)}, {ending}",
                    unit=metric.shown_unit,
                    meaning=metric.meaning,
                    group=group_of(metric),
                    elapsed_s=[round((cell + 0.5) * cell_s, 3) for cell in range(_CELLS)],
                    series=tuple(map(PlotSeries, names, lines)),
                )


def _line(
    summary: Summary,
    metric: Metric,
    combined: Callable[[Sequence[_Value]], _Value],
    cell_s: float,
) -> list[_Value]:
    """Return one value for each cell of the common time axis; None after the end of the run."""
    devices = summary.gpus if metric.scope == "gpu" else summary.nodes
    series = [one.series[metric.name] for one in devices if metric.name in one.series]
    # The sum of some nodes is not the sum of all nodes.
    if not series or (metric.scope == "node" and len(series) < len(devices)):
        return [None] * _CELLS
    bins = [combined(values) for values in zip(*series, strict=True)]
    return [_rounded(_mean(_within(bins, summary.bin_s, cell, cell_s))) for cell in range(_CELLS)]


def _within(bins: Series, bin_s: float, cell: int, cell_s: float) -> Sequence[_Value]:
    """Return the bins of a run that are in a cell: at least the bin at the middle of the cell."""
    first, last = (math.ceil(edge * cell_s / bin_s - 0.5) for edge in (cell, cell + 1))
    if first < last:
        return bins[first:last]
    middle = int((cell + 0.5) * cell_s / bin_s)
    return bins[middle : middle + 1]


def _mean(values: Iterable[_Value]) -> _Value:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _sum(values: Iterable[_Value]) -> _Value:
    known = list(values)
    return None if None in known else math.fsum(value for value in known if value is not None)


def _rounded(value: _Value) -> _Value:
    return None if value is None else float(f"{value:.5g}")
