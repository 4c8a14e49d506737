"""The values of a recording as series of a store, in parts that are sent one after the other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from teho.jobs.export.labels import info_labels, labels_of, memory_labels
from teho.jobs.export.openmetrics import Recorded
from teho.jobs.exporters import JOB_INFO, OWN_MEMORY, own_name
from teho.model.metric import METRICS, Metric, Scope, metrics_of
from teho.model.run import Node
from teho.store.read import NodeRows, rows_of_node

__all__ = ["Part", "StoredSeries", "parts_of"]

_KINDS: tuple[Scope, ...] = ("node", "gpu")


class StoredSeries(NamedTuple):
    """Values of one series."""

    name: str
    labels: dict[str, str]
    values: pa.Array
    """float64, without nulls."""
    times_ms: pa.Array
    """int64, in ms since 1970, ascending."""
    is_counter: bool


class Part(NamedTuple):
    """All values of a node in some time."""

    node: str
    until_ms: int
    """Time of its last values. All values before are in earlier parts."""
    series: list[StoredSeries]

    @property
    def value_count(self) -> int:
        """Number of values."""
        return sum(len(one.values) for one in self.series)


def parts_of(
    recorded: Recorded,
    since: Mapping[str, int],
    problems: list[str],
    each: int,
    first_until: Mapping[str, int] | None = None,
) -> Iterator[Part]:
    """Yield the parts of a recording, in the order of time for each node.

    Args:
        recorded: the recording; it may be running.
        since: node -> `until_ms` of the last part that is in the store.
        problems: gets a sentence for each file that cannot be read completely.
        each: number of values of a part, about.
        first_until: node -> `until_ms` of its first part, if this part was made before.
    """
    for node in recorded.run.nodes:
        tables: dict[str, NodeRows] = {}
        for kind in _KINDS:
            columns = ["time", *(metric.name for metric in metrics_of(kind))]
            rows = rows_of_node(recorded.directory, node.name, kind, columns, problems)
            if rows is not None:
                tables[kind] = rows
        span = (since.get(node.name, -1), (first_until or {}).get(node.name, -1))
        yield from _parts_of_node(recorded, node, tables, each, *span)


def _parts_of_node(
    recorded: Recorded,
    node: Node,
    tables: Mapping[str, NodeRows],
    each: int,
    since_ms: int,
    first_ms: int,
) -> Iterator[Part]:
    if not tables:
        return
    times = pa.chunked_array([own.table["time"].chunk(0) for own in tables.values()])
    moments = pc.unique(times.cast(pa.int64()).combine_chunks())
    moments = moments.take(pc.sort_indices(moments))
    moments = moments.filter(pc.greater(moments, since_ms))
    values = sum(_value_count(own.table) for own in tables.values())
    rows = max(1, each * len(pc.unique(times)) // max(values, 1))
    again = pc.sum(pc.less_equal(moments, first_ms)).as_py() or 0
    begins = [*([0] if again else []), *range(again, len(moments), rows), len(moments)]
    # Once for all parts: a node has some hundred series, and may have many parts.
    whole = [one for kind, table in tables.items() for one in _series(recorded, node, kind, table)]
    for begin, end in pairwise(begins):
        first_ms, last_ms = moments[begin].as_py(), moments[end - 1].as_py()
        yield Part(node.name, last_ms, [*_cut(whole, first_ms, last_ms)])


def _cut(whole: Sequence[StoredSeries], first_ms: int, last_ms: int) -> Iterator[StoredSeries]:
    """Yield the values of each series in a time. Series with the same times still share them."""
    places: dict[int, tuple[int, pa.Array]] = {}
    for one in whole:
        key = id(one.times_ms)
        if key not in places:
            moments = _numbers(one.times_ms)
            begin = bisect_left(moments, first_ms)
            end = bisect_right(moments, last_ms)
            places[key] = begin, one.times_ms.slice(begin, end - begin)
        begin, times = places[key]
        if len(times):
            values = one.values.slice(begin, len(times)).cast(pa.float64())
            yield one._replace(values=values, times_ms=times)


def _numbers(array: pa.Array) -> memoryview:
    """Return the numbers of an array of int64 without nulls, without a copy."""
    begin = 8 * array.offset
    return memoryview(array.buffers()[1])[begin : begin + 8 * len(array)].cast("q")


def _value_count(table: pa.Table) -> int:
    count: int = table.num_rows  # the info about the job
    for name in table.column_names:
        column = table[name]
        if pa.types.is_list(column.type):
            count += pc.sum(pc.list_value_length(column)).as_py() or 0
        else:
            count += len(column) - column.null_count
    return count


def _series(recorded: Recorded, node: Node, kind: str, rows: NodeRows) -> Iterator[StoredSeries]:
    """Yield all values of each series of a node, as they are in the recording."""
    about = info_labels(recorded.run, recorded.owner)
    for id_, labels in labels_of(node, kind):
        if id_ not in rows.places:
            continue
        own = rows.of(id_)
        times = own["time"].cast(pa.int64()).combine_chunks()

        for metric in METRICS:
            if metric.scope != kind:
                continue
            values = own[metric.name].combine_chunks()
            yield from _of_metric(metric, node, labels, values, times)
        facts = [(JOB_INFO, {**labels, **about}, 1)]
        if size := memory_labels(node, id_):
            facts.append((OWN_MEMORY, *size))
        for name, own_labels, value in facts:
            same = pa.repeat(float(value), len(times))
            yield StoredSeries(name, own_labels, same, times, is_counter=False)


def _of_metric(
    metric: Metric, node: Node, labels: dict[str, str], values: pa.Array, times: pa.Array
) -> Iterator[StoredSeries]:
    """Yield the series of a metric; one for each core, if it has a value for each of them."""
    name, is_counter = own_name(metric), metric.kind == "counter"
    if not metric.per_core:
        known = pc.and_(pc.is_valid(values), pc.fill_null(pc.is_finite(values), fill_value=False))
        if not pc.all(known, min_count=0).as_py():
            values, times = values.filter(known), times.filter(known)
        if len(values):
            yield StoredSeries(name, labels, values, times, is_counter)
        return
    lengths = pc.list_value_length(values)
    for number, core in enumerate(node.cores):
        has_core = pc.fill_null(pc.greater(lengths, number), fill_value=False)
        of_core, own_times = values, times
        if not pc.all(has_core, min_count=0).as_py():
            of_core, own_times = values.filter(has_core), times.filter(has_core)
        if len(of_core):
            of_core = pc.list_element(of_core, number)
            own = {**labels, "core": str(core)}
            yield StoredSeries(name, own, of_core, own_times, is_counter)
