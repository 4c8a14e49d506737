"""The rows of one node at any moment of a recording.

A recording of many nodes has more values than a viewer can read at once. So most columns are read
only when one of their values is needed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from teho.model.live import LiveSample
from teho.store.columns import column_of, floats
from teho.store.read import NodeRows, rows_of_node
from teho.store.schema import ROW_SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Moment", "NodeMoments"]

_NODE = "node"


class Moment(NamedTuple):
    """The rows of a node at a moment."""

    sample: LiveSample
    before: LiveSample | None
    """The sample before it: the increase of a counter needs two."""
    at_s: float
    """The moment, or the end of the rows if no row covers the moment."""


class NodeMoments:
    """Reads the rows of one node.

    Args:
        directory: the recording.
        node: name of the node.
        columns: kind of rows -> the columns that are read at once. All others are read together
            when one of them is needed.

    Attributes:
        last_s: end of the last row, in seconds after the start of the node; 0 without rows.
    """

    def __init__(self, directory: Path, node: str, columns: Mapping[str, Sequence[str]]) -> None:
        self._node = node
        self._devices: dict[str, _Device] = {}
        for kind, names in columns.items():
            # The report names files that cannot be read.
            read = partial(rows_of_node, directory, node, kind, problems=[])
            if found := read(["span_s", *names]):
                rows = _Rows(read, found)
                self._devices |= {device: _Device(device, rows) for device in found.places}
        self._times_s: Sequence[float] = ()
        if _NODE in self._devices:
            self._times_s = self._devices[_NODE].times_s
        self.last_s = self._times_s[-1] if self._times_s else 0.0
        self._shown: tuple[int, LiveSample, LiveSample | None] | None = None

    def at(self, moment_s: float) -> Moment | None:
        """Return the rows that cover a moment, or the rows before it; None: there are none.

        Args:
            moment_s: seconds after the start of the node.
        """
        place = bisect_left(self._times_s, moment_s)
        at_s = moment_s
        if place == len(self._times_s) or self._begins_s(place) > moment_s:
            if place == 0:
                return None
            place -= 1
            at_s = self._times_s[place]
        if self._shown is None or self._shown[0] != place:
            before = self._sample(place - 1) if place else None
            self._shown = place, self._sample(place), before
        return Moment(*self._shown[1:], at_s)

    def _begins_s(self, place: int) -> float:
        span_s: float = self._devices[_NODE].value(place, "span_s")
        return self._times_s[place] - span_s

    def _sample(self, place: int) -> LiveSample:
        elapsed_s = self._times_s[place]
        rows = (device.row(elapsed_s) for device in self._devices.values())
        found = [row for row in rows if row is not None]
        return LiveSample(node=self._node, elapsed_s=elapsed_s, rows=found)

    def newest(self, device: str, moment_s: float, count: int) -> list[Mapping[str, Any]]:
        """Return the newest rows of a device until a moment, at most `count`."""
        found = self._devices.get(device)
        if found is None:
            return []
        end = bisect_left(found.times_s, moment_s)
        return [_Row(found, place) for place in range(max(0, end - count), end)]


class _Rows:
    """The rows of one kind of a node."""

    def __init__(self, read: Callable[[Sequence[str]], NodeRows | None], rows: NodeRows) -> None:
        self._read = read
        self._rows = rows

    def column(self, device: str, name: str) -> pa.Array:
        """Return a column of a device's rows."""
        import pyarrow as pa

        if name not in self._rows.table.column_names:
            # If the run goes on, there are more rows by now. The earlier rows keep their places.
            self._rows = self._read(ROW_SCHEMA.names) or self._rows
        rows = self._rows.of(device)
        if name not in rows.column_names:
            return pa.nulls(rows.num_rows)  # the recording was deleted
        return column_of(rows, name)


class _Device:
    """The rows of one device, in the order of time."""

    def __init__(self, device: str, rows: _Rows) -> None:
        self._device = device
        self._rows = rows
        self._columns: dict[str, pa.Array] = {}
        self.times_s = floats(rows.column(device, "elapsed_s"))

    def value(self, place: int, name: str) -> Any:
        """Return a value of a row; None if it is missing."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self._rows.column(self._device, name)
        return column[place].as_py()

    def row(self, elapsed_s: float) -> _Row | None:
        """Return the row that ends at a moment; None: there is none."""
        place = bisect_left(self.times_s, elapsed_s)
        is_there = place < len(self.times_s) and self.times_s[place] == elapsed_s
        return _Row(self, place) if is_there else None


class _Row(Mapping[str, Any]):
    """One row of a device. A metric without a value is not there."""

    def __init__(self, device: _Device, place: int) -> None:
        self._device = device
        self._place = place

    def __getitem__(self, name: str) -> Any:
        value = self._device.value(self._place, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in ROW_SCHEMA.names if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
