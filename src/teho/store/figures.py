"""A gauge's figures over all rows of a node's devices."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from teho.model.summary import Stat
from teho.store.columns import bounds_of, column_of, element_means
from teho.store.schema import max_column

__all__ = ["core_means", "lowest_unused_w", "peaks_of", "stats_of"]


_BUSY_PERCENT = 1.0
"""The lowest utilisation above zero: drivers report whole percent."""


def stats_of(table: pa.Table, places: Mapping[str, slice], name: str) -> dict[str, Stat]:
    """Return a gauge's figures for each device that has values.

    Args:
        table: rows, ordered by device; with `span_s`, and the gauge's maxima if known.
        places: the rows of each device.
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
            # There is only one sample, as in a run shorter than the sampling period.
            figures[device] = Stat(high, 0.0, high, low, 0.0)
            continue
        mean = total / weight
        std = math.sqrt(max(0.0, square / weight - mean * mean))
        figures[device] = Stat(mean, std, high, low, weight)
    return figures


def peaks_of(table: pa.Table, places: Mapping[str, slice], name: str) -> dict[str, float]:
    """Return the largest maximum of a gauge for each device that has maxima, but no means."""
    if max_column(name) not in table.column_names:
        return {}
    column = column_of(table, max_column(name))
    if column.null_count == len(column) or column_of(table, name).null_count < len(column):
        return {}
    most = {device: bounds_of(column)(place)[1] for device, place in places.items()}
    return {device: value for device, value in most.items() if value is not None}


def lowest_unused_w(table: pa.Table, places: Mapping[str, slice]) -> dict[str, float]:
    """Return the lowest power of each device while no process used it, if known."""
    names = ("gpu_power_w", "gpu_job_processes")
    if not set(names) <= set(table.column_names):
        return {}
    power, users = (column_of(table, name) for name in names)
    # The mean of many samples may be rounded to 0; their maximum is not.
    most = max_column("gpu_job_processes")
    if most in table.column_names:
        users = pc.coalesce(column_of(table, most), users)
    unused = pc.fill_null(pc.equal(users, 0), False)
    if "gpu_busy_percent" in table.column_names:
        # Processes in a container may be hidden, and processes of other jobs may use the GPU.
        busy = pc.greater_equal(column_of(table, "gpu_busy_percent"), _BUSY_PERCENT)
        unused = pc.and_not(unused, pc.fill_null(busy, False))
    bounds = bounds_of(pc.if_else(unused, power, None))
    least = {device: bounds(place)[0] for device, place in places.items()}
    return {device: power_w for device, power_w in least.items() if power_w is not None}


def core_means(table: pa.Table) -> tuple[float, ...]:
    """Return each core's mean utilisation in %; empty if that was not recorded."""
    if "core_busy_percent" not in table.column_names:
        return ()
    lists = column_of(table, "core_busy_percent")
    spans = pc.cast(column_of(table, "span_s"), pa.float64())
    if lists.null_count:
        known = pc.is_valid(lists)
        spans, lists = spans.filter(known), lists.filter(known)
    # The cores of late tasks are at the end of the lists. Earlier lists are shorter.
    return element_means(lists, spans)
