"""The columns of a recording, made from the table of metrics."""

from __future__ import annotations

import pyarrow as pa

from teho.model.metric import METRICS, Metric

__all__ = ["KINDS", "ROW_SCHEMA", "column_type", "max_column"]

KINDS = ("gpu", "node")
"""Kinds of rows, in the order in which they are sealed: of the GPUs, and of the host."""


def column_type(metric: Metric) -> pa.DataType:
    """Return the Arrow type of a metric's column: exact for counts, 24 bits for gauges."""
    if metric.per_core:
        return pa.list_(pa.uint8())
    if metric.integer:
        return pa.int64()
    return pa.float64() if metric.kind == "counter" else pa.float32()


def max_column(name: str) -> str:
    """Return the name of the column with a row's largest sample; null for a single sample."""
    return f"{name}_max"


def _fields() -> list[pa.Field]:
    fields = [
        pa.field("elapsed_s", pa.float64(), nullable=False),
        pa.field("span_s", pa.float32(), nullable=False),
        pa.field("time", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
    ]
    for metric in METRICS:
        fields.append(pa.field(metric.name, column_type(metric)))
        if metric.kind == "gauge" and not metric.per_core:
            fields.append(pa.field(max_column(metric.name), column_type(metric)))
    return fields


ROW_SCHEMA: pa.Schema = pa.schema(_fields(), metadata={"teho.format": "1"})
"""One row: one device (`kind` is `node` or `gpu`) over `span_s` seconds up to `elapsed_s`."""
