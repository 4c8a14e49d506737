"""When a run showed what a finding says: the time bins in which a metric was beyond a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, zip_longest

from teho.explain.places import NodeGpu, Place, series_of
from teho.model.finding import Moments
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["Shows", "bins_where", "line_of", "moments_of", "near_peak"]

_LATE_BINS = 2
"""Number of bins without a sample that do not separate two times."""
_NEAR_PEAK = 0.99
"""Part of the highest bin from which on a bin counts as the peak."""
Shows = Sequence["bool | None"]
"""Whether each time bin shows it (bins,); None: not recorded."""


def moments_of(
    run: Run, summary: Summary, metric: str, places: Iterable[tuple[Place, Shows]]
) -> Moments | None:
    """Return the times in which at least one place showed something; None if there are none.

    Args:
        run: the run.
        summary: its figures.
        metric: name of the metric that showed it.
        places: GPUs or nodes, each with the time bins that show it.
    """
    given = [(place, bins) for place, bins in places if any(bins)]
    spans_s: list[tuple[float, float]] = []
    start = 0
    for is_shown, members in groupby(_joined([bins for _, bins in given])):
        end = start + sum(1 for _ in members)
        if is_shown:
            spans_s.append((round(start * summary.bin_s, 3), round(end * summary.bin_s, 3)))
        start = end
    several = len(run.nodes) > 1
    lines = tuple(line_of(place, several=several) for place, _ in given)
    return Moments(metric, lines, tuple(spans_s)) if spans_s else None


def _joined(places: Sequence[Shows]) -> list[bool | None]:
    """Return whether at least one place shows it (bins,).

    A few bins without a sample do not separate two times: the recorder was late.
    """
    columns = zip_longest(*places)
    shown = [True if True in column else False if False in column else None for column in columns]
    for bin_, is_shown in enumerate(shown):
        later = shown[bin_ + 1 : bin_ + 1 + _LATE_BINS]
        if is_shown is None and bin_ and shown[bin_ - 1]:
            shown[bin_] = next((one for one in later if one is not None), None)
    return shown


def bins_where(place: Place, metric: str, is_shown: Callable[[float], bool]) -> Shows:
    """Return the time bins in which a condition holds for the mean of a metric."""
    values = series_of(place).get(metric, [])
    return [None if value is None else is_shown(value) for value in values]


def near_peak(place: Place, metric: str) -> Shows:
    """Return the time bins in which a metric was within 1 % of its highest bin."""
    values = series_of(place).get(metric, [])
    most = max((value for value in values if value is not None), default=0.0)
    return bins_where(place, metric, lambda value: value >= _NEAR_PEAK * most)


def line_of(place: Place, *, several: bool) -> str:
    """Return the label of a GPU or node in a plot; `several`: the run has several nodes."""
    if not isinstance(place, NodeGpu):
        return place.name
    gpu = f"GPU {place.gpu.position}"
    return f"{place.node.name} {gpu}" if several else gpu
