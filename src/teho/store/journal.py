"""Writes a node's rows during the run: an Arrow stream, packed when it is large.

If the process is killed, the stream has complete batches and at most one incomplete batch at its
end. Readers ignore the incomplete batch.
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
"""One row of `ROW_SCHEMA`; a missing column is null."""

_COLUMNS = tuple((field.name, field.type) for field in ROW_SCHEMA)
"""Read from the schema only once, because it makes new fields each time."""
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_ROTATE_BYTES = 2 * 1024**2
_PENDING_ROWS = 20_000
"""Rows kept in memory while the disk is full: half an hour of an 8-GPU node, about 20 MB. If there
are more, the oldest are deleted."""


class Journal:
    """The live rows of one node.

    A full or missing disk raises no exception. `problem` says what is wrong, and the rows stay in
    memory until they can be written.
    """

    def __init__(self, run: Path, node: str) -> None:
        """Prepare to write into a run's directory; the first rows create the file."""
        self.problem: str | None = None
        """Why the last flush failed; None if it succeeded."""
        self.lost_rows = 0
        """Rows deleted because the disk was full for too long."""
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

    def flush(self) -> bool:
        """Write the pending rows with one system call, and rotate a part that is large.

        Returns:
            Whether there were rows, and they are written.
        """
        if not self._pending:
            return False
        try:
            self._write(_batch(self._pending).serialize().to_pybytes())
        except OSError as error:
            self._failed(error)
            return False
        self.problem = None
        self._pending.clear()
        self._packing = [child for child in self._packing if not child.ended()]
        if self._size > _ROTATE_BYTES:
            self._rotate()
        return True

    def close(self) -> None:
        """Flush, finish the stream and wait until all parts are packed. May be called twice."""
        self.flush()
        self._release(_END_OF_STREAM)
        for child in self._packing:
            child.join()
        self._packing = []

    def _failed(self, error: OSError) -> None:
        self.problem = f"{error.strerror or error} ({self._path})"

    def _release(self, last: bytes = b"") -> None:
        """Write the last bytes, and close the file.

        Network file systems may report a full disk only when a file is closed.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    file.write(last)
            except OSError as error:
                self._failed(error)

    def _write(self, message: bytes) -> None:
        """Append one complete message, or leave the file as it was."""
        if self._descriptor is not None and _is_deleted(self._descriptor):
            # Create it again, so that later rows are kept.
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
        """Begin a new part, and pack the old one in a child process.

        If packing fails, the stream stays, which needs more disk space. Sealing can read it.
        """
        path = self._path
        self._release(_END_OF_STREAM)
        self._number += 1
        with contextlib.suppress(OSError):
            self._packing.append(Child(partial(pack_part, path)))


def _is_deleted(descriptor: int) -> bool:
    """Return whether another process deleted an open file."""
    try:
        return os.fstat(descriptor).st_nlink == 0
    except OSError:  # ESTALE, if another machine deleted it
        return True


@lru_cache(maxsize=32)
def _nulls(count: int, type_: pa.DataType) -> pa.Array:
    """Return a column of nulls. It is cached: most flushes have the same number of rows."""
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
