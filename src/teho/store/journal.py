"""Writing a node's rows while the run goes on: an Arrow stream, packed as it grows.

A process that dies at any moment leaves whole batches and at most one torn one
behind them, which readers leave out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from teho.process.child import Child
from teho.store.layout import live_file, open_private
from teho.store.pack import pack_part
from teho.store.schema import ROW_SCHEMA

__all__ = ["Journal", "Row"]

Row = dict[str, Any]
"""One row of `ROW_SCHEMA`; a column that is left out is null."""

_COLUMNS = tuple((field.name, field.type) for field in ROW_SCHEMA)
"""Asked of the schema once: each time it would make all of them again."""
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_ROTATE_BYTES = 2 * 1024**2
# What waits for a full disk to have room again; older rows go first. 20,000 rows are
# half an hour of an 8-GPU node, and some 20 MB of memory.
_PENDING_ROWS = 20_000


class Journal:
    """The live rows of one node.

    Nothing here raises for a disk that is full or gone: `problem` says what is
    wrong, and rows wait in memory until they can be written.
    """

    def __init__(self, run: Path, node: str) -> None:
        """Prepare to write into a run's directory; the file is made with the first rows."""
        self.problem: str | None = None
        """Why the last flush did not reach the disk; None when it did."""
        self.lost_rows = 0
        """Rows given up because the disk stayed full for too long."""
        self._run = run
        self._node = node
        self._number = 0
        self._descriptor: int | None = None
        self._size = 0
        self._pending: list[Row] = []
        self._packing: list[Child] = []

    @property
    def _path(self) -> Path:
        return live_file(self._run, self._node, self._number)

    def append(self, rows: Sequence[Row]) -> None:
        """Keep rows for the next flush."""
        self._pending.extend(rows)
        surplus = len(self._pending) - _PENDING_ROWS
        if surplus > 0:
            del self._pending[:surplus]
            self.lost_rows += surplus

    def flush(self) -> None:
        """Write what waits, in one call to the kernel, and rotate a part that has grown large."""
        if not self._pending:
            return
        try:
            self._write(_batch(self._pending).serialize().to_pybytes())
        except OSError as error:
            self.problem = f"{error.strerror or error} ({self._path})"
            return
        self.problem = None
        self._pending.clear()
        self._packing = [child for child in self._packing if not child.ended()]
        if self._size > _ROTATE_BYTES:
            self._rotate()

    def close(self) -> None:
        """Flush, finish the stream and wait for what is being packed; safe to call twice."""
        self.flush()
        self._end_part()
        for child in self._packing:
            child.join()
        self._packing = []

    def _end_part(self) -> None:
        if self._descriptor is not None:
            try:
                os.write(self._descriptor, _END_OF_STREAM)
            except OSError as error:
                self.problem = f"{error.strerror or error} ({self._path})"
            self._release()

    def _release(self) -> None:
        """Close the file; network file systems tell of a full disk only now."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError as error:
                self.problem = f"{error.strerror or error} ({self._path})"

    def _write(self, message: bytes) -> None:
        """Append one whole message, or leave the file as it was."""
        if self._descriptor is not None and not self._path.exists():
            # Deleted under our feet: begin again, so that what comes next is kept.
            self._release()
        if self._descriptor is None:
            self._descriptor = open_private(self._path)
            self._size = 0
            message = ROW_SCHEMA.serialize().to_pybytes() + message
        written = 0
        try:
            while written < len(message):
                written += os.write(self._descriptor, message[written:])
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            if self._size == 0:
                self._release()
            raise
        self._size += written

    def _rotate(self) -> None:
        """Go on with a new part, and have the old one packed.

        Packing that fails costs room and nothing else: the stream stays, and sealing reads it.
        """
        path = self._path
        self._end_part()
        self._number += 1
        with contextlib.suppress(OSError):
            self._packing.append(Child(partial(pack_part, path)))


@lru_cache(maxsize=32)
def _nulls(count: int, type_: pa.DataType) -> pa.Array:
    """Return a column without values; flushes mostly have the same number of rows."""
    return pa.nulls(count, type=type_)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    known = set().union(*rows)
    columns = [
        pa.array([row.get(name) for row in rows], type=type_)
        if name in known
        else _nulls(len(rows), type_)
        for name, type_ in _COLUMNS
    ]
    return pa.record_batch(columns, schema=ROW_SCHEMA)
