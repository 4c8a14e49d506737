"""The overview of a node: few rows and all figures, for the report of a run of many nodes.

A report of 64 nodes over three days shows 48 points of each curve. Without overviews, it would
unpack four million rows. The overview is computed from these rows when they are sealed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teho.model.metric import METRICS, Metric
from teho.model.summary import Stat
from teho.store.columns import column_of
from teho.store.figures import core_means, lowest_unused_w, stats_of
from teho.store.layout import overview_file, sealed_file
from teho.store.read import NodeRows, rows_of_node, with_places
from teho.store.schema import KINDS, ROW_SCHEMA, max_column

__all__ = ["OVERVIEW_ROWS", "Figures", "Overview", "overview_of", "read_overview"]

OVERVIEW_ROWS = 512
"""Maximum for each device."""
_LEAST_RATIO = 2
"""The overview is written only if the node has this many times more rows."""

_FIGURES = b"teho.figures"
"""Key of the `Figures` in the file's metadata, as JSON."""
_GAUGES = [metric for metric in METRICS if metric.kind == "gauge" and not metric.per_core]
_COUNTERS = [metric.name for metric in METRICS if metric.kind == "counter"]
_IN_FIGURES = {
    *(max_column(gauge.name) for gauge in _GAUGES),
    *(metric.name for metric in METRICS if metric.per_core),
}
_SCHEMA = pa.schema([field for field in ROW_SCHEMA if field.name not in _IN_FIGURES])


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures that need all rows."""

    rows: dict[str, int]
    """The number of all rows of each device."""
    stats: dict[str, dict[str, Stat]]
    """By device and gauge."""
    core_means: tuple[float, ...] = ()
    """Each core's mean utilisation in %."""
    lowest_unused_w: dict[str, float] = {}
    """The lowest power of each device while no process used it, if known."""


class Overview(NamedTuple):
    """The rows and figures of one node, for a report of many nodes."""

    rows: dict[str, NodeRows]
    """By kind: the host's, and the GPUs'; a kind without rows is missing."""
    figures: Figures


def read_overview(run: Path, node: str, metrics: Sequence[Metric]) -> Overview | None:
    """Read the overview of a node; None if there is none, or if it is damaged.

    The maxima and the utilisation of each core are only in the figures, not in the rows.
    """
    if not sealed_file(run, node).exists():
        return None
    try:
        content = pa.py_buffer(overview_file(run, node).read_bytes())
        schema = pa.ipc.open_file(content).schema
        figures = msgspec.json.decode(schema.metadata[_FIGURES], type=Figures)
        rows = {}
        for batch, kind in enumerate(kind for kind in KINDS if _has(figures, kind)):
            wanted = {"elapsed_s", "span_s", "device"}
            wanted |= {one.name for one in metrics if one.scope == kind}
            fields = [place for place, name in enumerate(schema.names) if name in wanted]
            only = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            read = pa.ipc.open_file(content, options=only).get_batch(batch)
            table = pa.Table.from_batches([read])
            # An older Teho did not know every metric of today.
            for name in sorted(wanted.intersection(_SCHEMA.names).difference(schema.names)):
                nothing = pa.nulls(table.num_rows, _SCHEMA.field(name).type)
                table = table.append_column(name, nothing)
            found = with_places(table)
            if found:
                rows[kind] = found
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, msgspec.DecodeError):
        return None  # the report then reads all rows
    return Overview(rows, figures)


def _has(figures: Figures, kind: str) -> bool:
    return any((device == "node") == (kind == "node") for device in figures.rows)


def overview_of(run: Path, node: str) -> bytes | None:
    """Return the overview of a node with sealed rows; None if it has few rows.

    The means and totals of its rows are exact. Only the time resolution is lower.

    Returns:
        An Arrow IPC file with one batch for each kind that has rows, in the order of `KINDS`. It
        is not Parquet, because short columns of Parquet consist mostly of metadata. A report
        reads dozens of these files: 2 ms a node, and 5 to 10 ms with Parquet.
    """
    # All devices of a node have the same number of rows.
    host = rows_of_node(run, node, "node", ["elapsed_s"], [])
    if host is None or host.table.num_rows < _LEAST_RATIO * OVERVIEW_ROWS:
        return None
    found = Figures(rows={}, stats={})
    tables: list[pa.Table] = []
    for kind in KINDS:
        rows = rows_of_node(run, node, kind, ROW_SCHEMA.names, [])
        if rows is None:
            continue
        tables.append(_thinned(rows))
        for device, place in rows.places.items():
            found.rows[device] = place.stop - place.start
            found.stats[device] = {}
        for gauge in _GAUGES:
            for device, stat in stats_of(rows.table, rows.places, gauge.name).items():
                found.stats[device][gauge.name] = stat
        if kind == "node":
            found = msgspec.structs.replace(found, core_means=core_means(rows.table))
        else:
            found.lowest_unused_w.update(lowest_unused_w(rows.table, rows.places))
    sink = pa.BufferOutputStream()
    schema = _SCHEMA.with_metadata({_FIGURES: msgspec.json.encode(found)})
    small = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, schema, options=small) as file:
        for table in tables:
            file.write_table(table)
    return bytes(sink.getvalue())


def _thinned(rows: NodeRows) -> pa.Table:
    """Merge the rows of each device that are in the same slice of the node's time."""
    table = rows.table
    span = pc.cast(column_of(table, "span_s"), pa.float64())
    elapsed_s = column_of(table, "elapsed_s")
    middles = pc.subtract(elapsed_s, pc.multiply(span, 0.5))
    width_s = max(pc.max(elapsed_s).as_py() / OVERVIEW_ROWS, 1e-9)
    slices = pc.min_element_wise(pc.floor(pc.divide(middles, width_s)), OVERVIEW_ROWS - 1)
    device = pa.concat_arrays(
        [
            pa.repeat(number * OVERVIEW_ROWS, place.stop - place.start)
            for number, place in enumerate(rows.places.values())
        ]
    )
    columns: dict[str, Any] = {"slice": pc.add(device, pc.cast(slices, pa.int64())), "span": span}
    wanted = [("span", "sum")]
    for name in ("elapsed_s", "time", *_known(table, _COUNTERS)):
        columns[name] = column_of(table, name)
        wanted.append((name, "max"))
    for name in ("node", "kind", "device"):
        columns[name] = column_of(table, name)
        wanted.append((name, "first"))
    gauges = list(_known(table, [metric.name for metric in _GAUGES]))
    for name in gauges:
        values = column_of(table, name)
        weighted = pc.multiply(pc.cast(values, pa.float64()), span)
        columns[f"{name} weighted"] = weighted
        columns[f"{name} covered"] = pc.if_else(pc.is_valid(values), span, 0.0)
        wanted += [(f"{name} weighted", "sum"), (f"{name} covered", "sum")]
    grouped = pa.table(columns).group_by("slice", use_threads=False).aggregate(wanted)
    return _as_rows(grouped, gauges)


def _known(table: pa.Table, names: list[str]) -> Iterator[str]:
    return (name for name in names if table[name].null_count < table.num_rows)


def _as_rows(grouped: pa.Table, gauges: list[str]) -> pa.Table:
    columns = {
        name: grouped[f"{name}_{how}"]
        for how in ("max", "first")
        for name in _SCHEMA.names
        if f"{name}_{how}" in grouped.column_names
    }
    columns["span_s"] = grouped["span_sum"]
    for name in gauges:
        covered = grouped[f"{name} covered_sum"]
        mean = pc.divide(grouped[f"{name} weighted_sum"], covered)
        column_type = ROW_SCHEMA.field(name).type
        mean = pc.round(mean) if pa.types.is_integer(column_type) else mean
        columns[name] = pc.if_else(pc.greater(covered, 0.0), mean, None)
    empty = pa.nulls(grouped.num_rows)
    arrays = [pc.cast(columns.get(field.name, empty), field.type) for field in _SCHEMA]
    return pa.table(arrays, schema=_SCHEMA)
