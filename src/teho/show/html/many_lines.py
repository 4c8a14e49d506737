"""Plots of very many lines: their spread, and the lines that say most.

With hundreds of lines, no line can be told from another, and the page is slow. The report as JSON
has all lines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean

import msgspec

from teho.model.document import Plot, PlotSeries
from teho.model.finding import Finding
from teho.units import counted

__all__ = ["with_few_lines"]

_MOST_LINES = 128
_MOST_NAMED = 16
"""Number of lines of a finding that are always drawn."""
_UNUSUAL = 5
"""Number of lines with the smallest means, and of those with the largest, that are drawn."""
_PERCENTILES = {"90th percentile": 0.9, "median": 0.5, "10th percentile": 0.1}


def with_few_lines(plots: Iterable[Plot], findings: Sequence[Finding]) -> tuple[Plot, ...]:
    """Return the plots; a plot of more than 128 lines has the spread of its lines instead.

    Such a plot has the highest and the lowest value in each bin, percentiles between them, and the
    lines with the smallest and the largest means. Lines that a finding names are drawn too.
    """
    return tuple(
        plot if len(plot.series) <= _MOST_LINES else _with_spread(plot, _named(plot, findings))
        for plot in plots
    )


def _named(plot: Plot, findings: Sequence[Finding]) -> set[str]:
    """Return the first lines that each finding about this metric names."""
    moments = [one.moments for one in findings if one.moments and one.moments.metric == plot.key]
    return {label for one in moments for label in one.lines[:_MOST_NAMED]}


def _with_spread(plot: Plot, named: Collection[str]) -> Plot:
    lines = plot.series
    means = {
        number: fmean(known) if line.mean is None else line.mean
        for number, line in enumerate(lines)
        if (known := [value for value in line.values if value is not None])
    }
    by_mean = sorted(means, key=means.__getitem__)
    kept = {*by_mean[:_UNUSUAL], *by_mean[-_UNUSUAL:]}
    kept |= {number for number, line in enumerate(lines) if line.label in named}
    series = (*_spread(lines), *(lines[number] for number in sorted(kept)))
    return msgspec.structs.replace(plot, series=series)


def _spread(lines: Sequence[PlotSeries]) -> Iterable[PlotSeries]:
    """Yield the highest, some percentiles and the lowest of the lines, in each bin.

    A percentile is the value of one line (nearest rank): no value is computed from two.
    """
    bins = [
        sorted(value for value in values if value is not None)
        for values in zip(*(line.values for line in lines), strict=True)
    ]
    ranks = {f"highest of {counted(len(lines), 'line')}": 1.0} | _PERCENTILES
    ranks[f"lowest of {counted(len(lines), 'line')}"] = 0.0
    for label, rank in ranks.items():
        values = [known[_nearest(rank, len(known))] if known else None for known in bins]
        yield PlotSeries(label, values)


def _nearest(rank: float, count: int) -> int:
    return math.floor(rank * (count - 1) + 0.5)
