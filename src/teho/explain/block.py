"""The rows of a node's devices of one kind: their figures, and their means per time bin."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Union

import pyarrow as pa
import pyarrow.compute as pc

from teho.model.metric import Metric
from teho.model.summary import Stat
from teho.store.columns import column_of, floats
from teho.store.figures import core_means, lowest_unused_w, peaks_of, stats_of
from teho.store.overview import Figures
from teho.store.read import NodeRows

__all__ = ["Bins", "Block", "OfDevices", "five_digits"]


OfDevices = dict[str, tuple[Union[Stat, float], "array[float]"]]
"""By device: a gauge's figures or a counter's growth, and the mean or the rate per second in each
bin, to five digits; NaN: no recorded value."""
_FLOAT_BYTES = 8


class _Draft(NamedTuple):
    """Running sums of a metric and of its weights, before the division."""

    name: str
    of_devices: Mapping[str, Union[Stat, float]]
    at_edges: pa.Array
    weights: pa.Array


class Bins:
    """Equal slices of the run's time.

    Args:
        count: their number.
        width_s: the width of each.
        begin_s: where the first one begins. It also has what was before.
    """

    def __init__(self, count: int, width_s: float, begin_s: float = 0.0) -> None:
        self.count = count
        self.width_s = width_s
        self._begin_s = begin_s

    def edges(self, middles_s: memoryview[float], place: slice, offset_s: float) -> list[int]:
        """Return the first row of a device with its middle in or after each bin (count + 1,).

        Args:
            middles_s: the middle of each row's span.
            place: the device's rows.
            offset_s: difference between the run's time and the node's.
        """
        first, last = place.start, place.stop
        inner = [
            bisect_left(middles_s, self._begin_s + index * self.width_s - offset_s, first, last)
            for index in range(1, self.count)
        ]
        return [first, *inner, last]


class Block:
    """The rows of all devices of one kind on a node.

    Arrow computes each column once for all devices: the sum in a bin is the difference of two
    running sums. The edges of the bins are in one array, device after device.
    """

    def __init__(
        self, rows: NodeRows, bins: Bins, offset_s: float, figures: Figures | None = None
    ) -> None:
        """Compute the edges of the bins.

        Args:
            rows: the rows.
            bins: the time bins.
            offset_s: difference between the run's time and the node's.
            figures: the figures of all rows, if `rows` is an overview.
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
        """Return the sums of the rows before each edge (devices * (bins + 1),); null if none."""
        return pc.cumulative_sum(values).take(self._before)

    def figures(self, metrics: Sequence[Metric]) -> dict[str, OfDevices]:
        """Return the figures of each metric, for the devices that have them."""
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
                    # Only one instant was recorded: the run was shorter than a sample.
                    first = self.places[device].start
                    bin_means[bisect_right(self._edges[device], first) - 1] = value.max
                if value is not None:
                    found[draft.name][device] = value, bin_means
        return found

    def _steps(
        self, at_edges: Sequence[pa.Array], weights: Sequence[pa.Array]
    ) -> Iterator[array[float]]:
        """Yield each device's quotients of the steps between edges; NaN if there is none.

        All metrics are divided in one call: a call for each of a hundred short arrays would take
        longer than the divisions.
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
        # The step from a device's last edge to the next device's first edge is left out.
        digits = floats(five_digits(pc.if_else(known, quotients, math.nan)))
        content = digits.cast("B")
        for first in range(0, len(digits) + 1, self._bins + 1):
            means = array("d")
            means.frombytes(content[first * _FLOAT_BYTES : (first + self._bins) * _FLOAT_BYTES])
            yield means

    def _gauge(self, name: str) -> _Draft | None:
        """Return a gauge's figures, and its running sums at the edges."""
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
        """Return how much a counter grew, its values at the edges, and their times."""
        column = column_of(self.table, name)
        if column.null_count == len(column):
            return None
        known = self.places
        if column.null_count:
            of_devices = {device: column[place] for device, place in self.places.items()}
            known = {id_: own for id_, own in of_devices.items() if own.null_count < len(own)}
            # In a gap, the last known total counts.
            flat = [pc.fill_null(pc.fill_null_forward(own), 0) for own in of_devices.values()]
            column = pa.concat_arrays(flat)
        at_edges = pc.cast(column.take(self._last), pa.float64())
        ends = floats(at_edges)[self._bins :: self._bins + 1]
        totals = {
            id_: max(end, 0.0) for id_, end in zip(self.places, ends, strict=True) if id_ in known
        }
        # A counter that starts with the program also covers the time before the first row.
        times = self._times[name.startswith("job_")]
        return _Draft(name, totals, at_edges, times)

    @cached_property
    def _last(self) -> pa.Array:
        """A device's last row before each edge; null if there is none."""
        rows = [
            edge - 1 if edge > edges[0] else None
            for edges in self._edges.values()
            for edge in edges
        ]
        return pa.array(rows, type=pa.int32())

    @cached_property
    def _times(self) -> tuple[pa.Array, pa.Array]:
        """The time of `_last`: since the first row's beginning, and since the program's start."""
        ends_s = column_of(self.table, "elapsed_s").take(self._last)
        begins = [
            self.ends_s[place.start] - self.spans_s[place.start]
            for place in self.places.values()
            for _ in range(self._bins + 1)
        ]
        return pc.coalesce(ends_s, pa.array(begins, type=pa.float64())), ends_s

    @cached_property
    def lowest_unused_w(self) -> dict[str, float]:
        """The lowest known power of each device while it was not used."""
        if self._figures:
            return self._figures.lowest_unused_w
        return lowest_unused_w(self.table, self.places)

    def peaks(self, name: str) -> dict[str, float]:
        """Return a gauge's maxima for the devices of which nothing else is known."""
        return {} if self._figures else peaks_of(self.table, self.places, name)

    def row_count(self, device: str) -> int:
        """Return the number of all rows of a device."""
        if self._figures:
            return self._figures.rows[device]
        place = self.places[device]
        return int(place.stop - place.start)

    @property
    def core_means(self) -> tuple[float, ...]:
        """The mean busy share of each core in %, from the host's rows."""
        return self._figures.core_means if self._figures else core_means(self.table)

    def extent_s(self, device: str) -> tuple[float, float]:
        """Return when a device's first row begins and its last row ends, in the run's time."""
        place = self.places[device]
        first, last = place.start, place.stop - 1
        begin_s = self.ends_s[first] - self.spans_s[first]
        return begin_s + self._offset_s, self.ends_s[last] + self._offset_s


def five_digits(values: pa.Array) -> pa.Array:
    """Round to five digits: more digits would make a report of many nodes three times as large.

    Arrow rounds exactly only with ten powers of ten: small values keep ten decimals, large values
    more digits.
    """
    size = pc.min_element_wise(pc.max_element_wise(pc.abs(values), 1e-6), 1e14)
    digits = pc.subtract(4, pc.floor(pc.log10(size)))
    return pc.round_binary(values, pc.cast(digits, pa.int32()))
