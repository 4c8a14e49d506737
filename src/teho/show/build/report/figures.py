"""Figures of a metric as cells of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from teho.model.document import Cell
from teho.model.missing import Missing, Reason
from teho.model.summary import Stat

__all__ = ["figure_of", "largest", "mean"]

T = TypeVar("T")


def figure_of(figures: Mapping[str, T], name: str) -> T | Missing:
    """Return the figure of a metric; `Missing` if the metric was not recorded."""
    return figures.get(name, Missing(Reason.UNRECORDED, "not among the recorded metrics"))


def mean(stat: Stat | Missing) -> Cell:
    """Return the mean of a metric, if it was recorded."""
    return stat.mean if isinstance(stat, Stat) else stat


def largest(stat: Stat | Missing) -> Cell:
    """Return the largest value of a metric, if it was recorded."""
    return stat.max if isinstance(stat, Stat) else stat
