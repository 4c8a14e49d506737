"""A gauge's figures over all rows of a node's devices."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from teho.model.summary import Stat
from teho.store.columns import bounds_of, column_of, element_means
from teho.store.schema import max_column

__all__ = ["core_means", "stats_of"]


def stats_of(table: pa.Table, places: Mapping[str, slice], name: str) -> dict[str, Stat]:
    """Return a gauge's figures, for the devices that have any.

    Args:
        table: rows, device by device; with `span_s`, and the gauge's largest sub-samples if known.
        places: where each device's rows lie.
        name: the gauge.
    """
    column = column_of(table, name)
    if column.null_count == len(column):
        return {}
    values = pc.cast(column, pa.float64())
    span = pc.cast(column_of(table, "span_s"), pa.float64())
    if values.null_count:
        span = pc.if_else(pc.is_valid(values), span, 0.0)
        values = pc.fill_null(values, 0.0)
    weighted = pc.multiply(values, span)
    squares = pc.multiply(weighted, values)
    bounds = bounds_of(column)
    largest = bounds
    if max_column(name) in table.column_names:
        largest = bounds_of(column_of(table, max_column(name)))
    figures = {}
    for device, place in places.items():
        low, high = bounds(place)
        if low is None or high is None:
            continue
        if largest is not bounds:
            sampled = largest(place)[1]
            high = high if sampled is None else max(high, sampled)
        total, square, weight = (pc.sum(sums[place]).as_py() for sums in (weighted, squares, span))
        if weight <= 0:
            # Only one instant was seen, as in a run shorter than a sample.
            figures[device] = Stat(high, 0.0, high, low, 0.0)
            continue
        mean = total / weight
        std = math.sqrt(max(0.0, square / weight - mean * mean))
        figures[device] = Stat(mean, std, high, low, weight)
    return figures


def core_means(table: pa.Table) -> tuple[float, ...]:
    """Return each core's mean share of time at work in %; empty where that was not recorded."""
    if "core_busy_percent" not in table.column_names:
        return ()
    lists = column_of(table, "core_busy_percent")
    spans = pc.cast(column_of(table, "span_s"), pa.float64())
    if lists.null_count:
        known = pc.is_valid(lists)
        spans, lists = spans.filter(known), lists.filter(known)
    # Cores of tasks that came late are at the lists' end, and lack in those before.
    return element_means(lists, spans)
