"""Writing a node's rows: an Arrow stream while the run goes on, Parquet when it is sealed.

A process that dies at any moment leaves whole batches and at most one torn one
behind them, which readers leave out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from teho.errors import DamagedError
from teho.store.layout import live_parts, open_private, sealed_file
from teho.store.read import in_order, read_part
from teho.store.schema import ROW_SCHEMA

__all__ = ["Journal", "Row", "seal"]

Row = dict[str, Any]
"""One row of `ROW_SCHEMA`; a column that is left out is null."""

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

    @property
    def _path(self) -> Path:
        return self._run / "live" / f"{self._node}.{self._number:04d}.arrows"

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
        if self._size > _ROTATE_BYTES:
            self._rotate()

    def close(self) -> None:
        """Flush and finish the stream; safe to call twice."""
        self.flush()
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
            # Deleted under our feet: begin anew, so that what comes next is kept.
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
        """Turn the stream into a compact Parquet part; on failure simply go on with the stream."""
        path = self._path
        try:
            table, _ = read_part(path)
            _write_parquet(table, path.with_suffix(".parquet"))
        except (OSError, DamagedError) as error:
            self.problem = str(error)
            return
        self._release()
        path.unlink(missing_ok=True)
        self._number += 1


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = []
    for field in ROW_SCHEMA:
        values = [row.get(field.name) for row in rows]
        columns.append(pa.array(values, type=field.type))
    return pa.record_batch(columns, schema=ROW_SCHEMA)


def seal(run: Path, node: str) -> bool:
    """Join a node's live parts into one Parquet file, sorted by device and time.

    Returns whether there was anything to seal. The live parts go only after the
    sealed file stands, so a kill in between loses nothing.

    Raises:
        OSError: the sealed file cannot be written; the live parts stay.
    """
    parts = live_parts(run, node)
    tables = [read_part(path)[0] for path in parts]
    table = pa.concat_tables(tables) if tables else ROW_SCHEMA.empty_table()
    if table.num_rows == 0:
        return False
    _write_parquet(table, sealed_file(run, node))
    for path in parts:
        for suffix in (".arrows", ".parquet"):
            path.with_suffix(suffix).unlink(missing_ok=True)
    return True


def _write_parquet(table: pa.Table, path: Path) -> None:
    """Write rows device by device, each in order of time: like beside like is small.

    One row group for each kind, so that a reader of GPUs does not unpack the host's columns;
    not one for each device, which would make short runs mostly footer.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        descriptor = open_private(temporary, exclusive=True)
        with (
            os.fdopen(descriptor, "wb") as file,
            pq.ParquetWriter(
                file,
                table.schema,
                compression="zstd",
                use_dictionary=_DICTIONARY_COLUMNS,
                column_encoding=_ENCODINGS,
                store_schema=True,
            ) as writer,
        ):
            ordered = in_order(table)
            for kind in pc.unique(ordered["kind"]).to_pylist():
                rows = ordered.filter(pc.equal(ordered["kind"], kind))
                writer.write_table(rows, row_group_size=1 << 24)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


_DICTIONARY_COLUMNS = [
    field.name
    for field in ROW_SCHEMA
    if pa.types.is_string(field.type) or pa.types.is_float32(field.type)
]
# Counters and time stamps grow steadily: their differences are small and alike.
_ENCODINGS = {
    field.name: "DELTA_BINARY_PACKED"
    for field in ROW_SCHEMA
    if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
} | {field.name: "BYTE_STREAM_SPLIT" for field in ROW_SCHEMA if pa.types.is_float64(field.type)}
