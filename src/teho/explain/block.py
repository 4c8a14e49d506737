"""One node's rows of one kind: each device's figures, and its means per time bin."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Union

import pyarrow as pa
import pyarrow.compute as pc

from teho.model.metric import Metric
from teho.model.summary import Stat
from teho.store.columns import column_of, floats
from teho.store.figures import core_means, lowest_unused_w, stats_of
from teho.store.overview import Figures
from teho.store.read import NodeRows

__all__ = ["Bins", "Block", "OfDevices"]


OfDevices = dict[str, tuple[Union[Stat, float], list[Union[float, None]]]]
"""By device: what a gauge was or a counter grew by, and its mean or rate per second in each bin,
to five digits."""


class _Draft(NamedTuple):
    """A metric before its steps from edge to edge are divided by those of its weights."""

    name: str
    of_devices: Mapping[str, Union[Stat, float]]
    at_edges: pa.Array
    weights: pa.Array


class Bins:
    """Equal slices of the run's time."""

    def __init__(self, count: int, width_s: float) -> None:
        self.count = count
        self.width_s = width_s

    def edges(self, middles_s: memoryview[float], place: slice, offset_s: float) -> list[int]:
        """Return, for each bin, a device's first row whose middle is in it or after (count + 1,).

        Args:
            middles_s: the middle of each row's span.
            place: the device's rows among them.
            offset_s: from the node's time to the run's.
        """
        first, last = place.start, place.stop
        inner = [
            bisect_left(middles_s, index * self.width_s - offset_s, first, last)
            for index in range(1, self.count)
        ]
        return [first, *inner, last]


class Block:
    """The rows of all devices of one kind on a node.

    Each column is worked on once for all devices, in Arrow: a share of it is the difference of
    two running sums. The edges of all devices' bins stand one device behind the other.
    """

    def __init__(
        self, rows: NodeRows, bins: Bins, offset_s: float, figures: Figures | None = None
    ) -> None:
        """Prepare it.

        Args:
            rows: the rows.
            bins: what to divide them into.
            offset_s: from the node's time to the run's.
            figures: those of all rows, where these are an overview.
        """
        self.table, self.places = rows
        self._figures = figures
        self._offset_s = offset_s
        self._bins = bins.count
        self.ends_s = floats(column_of(self.table, "elapsed_s"))
        self.span = pc.cast(column_of(self.table, "span_s"), pa.float64())
        self.spans_s = floats(self.span)
        middles = floats(
            pc.subtract(column_of(self.table, "elapsed_s"), pc.multiply(self.span, 0.5))
        )
        self._edges = {
            device: bins.edges(middles, place, offset_s) for device, place in self.places.items()
        }
        self._before = pa.array(
            [edge - 1 if edge else None for edges in self._edges.values() for edge in edges],
            type=pa.int32(),
        )
        self._covered = self._until_edges(self.span)

    def _until_edges(self, values: pa.Array) -> pa.Array:
        """Return the sums of all rows before each edge (devices * (bins + 1),); null before any."""
        return pc.cumulative_sum(values).take(self._before)

    def figures(self, metrics: Sequence[Metric]) -> dict[str, OfDevices]:
        """Return each metric's figures of the devices that have any."""
        drafts = [
            draft
            for metric in metrics
            if (draft := (self._gauge if metric.kind == "gauge" else self._counter)(metric.name))
        ]
        means = self._steps([draft.at_edges for draft in drafts], [d.weights for d in drafts])
        found: dict[str, OfDevices] = {}
        for draft in drafts:
            found[draft.name] = {}
            for device in self.places:
                bin_means = next(means)
                value = draft.of_devices.get(device)
                if isinstance(value, Stat) and value.covered_s <= 0:
                    # Only one instant was seen, as in a run shorter than a sample.
                    first = self.places[device].start
                    bin_means[bisect_right(self._edges[device], first) - 1] = value.max
                if value is not None:
                    found[draft.name][device] = value, bin_means
        return found

    def _steps(
        self, at_edges: Sequence[pa.Array], weights: Sequence[pa.Array]
    ) -> Iterator[list[float | None]]:
        """Divide the steps between edges, and yield the quotients of one device after the other.

        All of them at once: there are a hundred short arrays, and each call takes as long as
        its thousands of divisions.
        """
        if not at_edges:
            return
        tops, bottoms = (
            pc.subtract(values[1:], values[:-1])
            for values in (
                pc.fill_null(pa.concat_arrays(arrays), 0.0) for arrays in (at_edges, weights)
            )
        )
        quotients = pc.divide(tops, bottoms)
        known = pc.and_(pc.greater(bottoms, 1e-9), pc.is_finite(quotients))
        # From one device's last edge to the next one's first is no bin.
        values = floats(_five_digits(pc.if_else(known, quotients, math.nan))).tolist()
        for first in range(0, len(values) + 1, self._bins + 1):
            own = values[first : first + self._bins]
            yield [None if math.isnan(one) else one for one in own]

    def _gauge(self, name: str) -> _Draft | None:
        """Return a gauge's figures, and its sums at the edges."""
        if self._figures:
            every = self._figures.stats
            stats = {id_: every[id_][name] for id_ in self.places if name in every[id_]}
        else:
            stats = stats_of(self.table, self.places, name)
        if not stats:
            return None
        values = column_of(self.table, name)
        covered = self._covered
        if values.null_count:
            covered = self._until_edges(pc.if_else(pc.is_valid(values), self.span, 0.0))
            values = pc.fill_null(values, 0.0)
        return _Draft(name, stats, self._until_edges(pc.multiply(values, self.span)), covered)

    def _counter(self, name: str) -> _Draft | None:
        """Return how much a counter grew, what it showed at the edges, and when that was."""
        column = column_of(self.table, name)
        if column.null_count == len(column):
            return None
        known = self.places
        if column.null_count:
            of_devices = {device: column[place] for device, place in self.places.items()}
            known = {id_: own for id_, own in of_devices.items() if own.null_count < len(own)}
            # A gap in a running total stays flat until it is known again.
            flat = [pc.fill_null(pc.fill_null_forward(own), 0) for own in of_devices.values()]
            column = pa.concat_arrays(flat)
        at_edges = pc.cast(column.take(self._last), pa.float64())
        ends = floats(at_edges)[self._bins :: self._bins + 1]
        totals = {
            id_: max(end, 0.0) for id_, end in zip(self.places, ends, strict=True) if id_ in known
        }
        # What is counted from the program's start covers the time before the first row too.
        times = self._times[name.startswith("job_")]
        return _Draft(name, totals, at_edges, times)

    @cached_property
    def _last(self) -> pa.Array:
        """A device's last row before each edge; null if it has none."""
        rows = [
            edge - 1 if edge > edges[0] else None
            for edges in self._edges.values()
            for edge in edges
        ]
        return pa.array(rows, type=pa.int32())

    @cached_property
    def _times(self) -> tuple[pa.Array, pa.Array]:
        """The time of `_last`: from where the first row begins, and from the program's start."""
        ends_s = column_of(self.table, "elapsed_s").take(self._last)
        begins = [
            self.ends_s[place.start] - self.spans_s[place.start]
            for place in self.places.values()
            for _ in range(self._bins + 1)
        ]
        return pc.coalesce(ends_s, pa.array(begins, type=pa.float64())), ends_s

    @cached_property
    def lowest_unused_w(self) -> dict[str, float]:
        """The least power of each device while nothing held it or ran on it, where known."""
        if self._figures:
            return self._figures.lowest_unused_w
        return lowest_unused_w(self.table, self.places)

    def row_count(self, device: str) -> int:
        """Return how many rows a device has in all."""
        if self._figures:
            return self._figures.rows[device]
        place = self.places[device]
        return int(place.stop - place.start)

    @property
    def core_means(self) -> tuple[float, ...]:
        """Each core's mean share of time at work in %, of the host's rows."""
        return self._figures.core_means if self._figures else core_means(self.table)

    def extent_s(self, device: str) -> tuple[float, float]:
        """Return where a device's first row begins and its last one ends, on the run's time."""
        place = self.places[device]
        first, last = place.start, place.stop - 1
        begin_s = self.ends_s[first] - self.spans_s[first]
        return begin_s + self._offset_s, self.ends_s[last] + self._offset_s


def _five_digits(values: pa.Array) -> pa.Array:
    """Round: more cannot be seen, and would make a report of many nodes three times as large.

    Arrow has only ten powers of ten exactly: smaller values keep ten decimals, larger ones more
    digits.
    """
    size = pc.min_element_wise(pc.max_element_wise(pc.abs(values), 1e-6), 1e14)
    digits = pc.subtract(4, pc.floor(pc.log10(size)))
    return pc.round_binary(values, pc.cast(digits, pa.int32()))
