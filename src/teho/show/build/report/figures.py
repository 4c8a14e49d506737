"""Figures of a metric as cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from teho.explain.places import known_part
from teho.model.document import Cell, Table
from teho.model.missing import Missing, Reason
from teho.model.summary import GpuSummary, NodeSummary, Stat, Summary
from teho.show.build.layout import ColumnOf, column, table

__all__ = ["NodeGpu", "figure_of", "largest", "mean", "table_of_gpus", "watt_hours"]

T = TypeVar("T")
NodeGpu = tuple[NodeSummary, GpuSummary]
_UNRECORDED = Missing(Reason.UNRECORDED, "the recorded metrics do not include this")


def figure_of(figures: Mapping[str, T], name: str) -> T | Missing:
    """Return the figure of a metric; `Missing` if the metric was not recorded."""
    return figures.get(name, _UNRECORDED)


def mean(stat: Stat | Missing) -> Cell:
    """Return the mean of a metric, if it was recorded."""
    known = known_part(stat, "mean")
    return stat if known is None and isinstance(stat, Missing) else known


def largest(stat: Stat | Missing) -> Cell:
    """Return the largest value of a metric, if it was recorded."""
    known = known_part(stat, "max")
    return stat if known is None and isinstance(stat, Missing) else known


def table_of_gpus(
    key: str, title: str, summary: Summary, *columns: ColumnOf[NodeGpu], note: str
) -> Table:
    """Return a table with a row for each GPU, which begins with its node and its position."""
    return table(
        key,
        title,
        [(node, gpu) for node in summary.nodes for gpu in node.gpus],
        column("node", "Node", lambda pair: pair[0].name),
        column("gpu", "GPU", lambda pair: pair[1].position),
        *columns,
        note=note,
    )


def watt_hours(
    key: str, label: str, cell: Callable[[T], Cell], *, band: str = "", aside: bool = False
) -> ColumnOf[T]:
    """Return a column of energies."""
    return column(key, label, cell, band=band, unit="J", shown_in="Wh", decimals=2, aside=aside)
