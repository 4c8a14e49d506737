"""Converts streams to Parquet: a large part during the run, and all rows at its end.

Arrow's Parquet code needs 50 to 100 MB of memory for half a second. It runs in a child of the
recorder, so that the recorder stays small.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from teho.errors import DamagedError
from teho.store.layout import live_parts, open_private, overview_file, replace_file, sealed_file
from teho.store.read import in_order, read_part
from teho.store.schema import KINDS, ROW_SCHEMA

__all__ = ["pack_part", "seal"]


def pack_part(path: Path) -> None:
    """Convert a finished stream to a Parquet part in the same folder, and delete the stream.

    Raises:
        OSError: the part cannot be written; the stream stays.
        DamagedError: the stream cannot be read.
    """
    _write_parquet(_rows_by_kind([path]), path.with_suffix(".parquet"))
    path.unlink(missing_ok=True)


def seal(run: Path, node: str) -> bool:
    """Join a node's live parts into one Parquet file, sorted by device and time.

    The live parts are deleted only when the sealed file is complete, so a kill loses no rows.

    Returns:
        Whether there were rows.

    Raises:
        OSError: the sealed file cannot be written; the live parts stay.
        DamagedError: a part cannot be read.
    """
    parts = live_parts(run, node)
    sealed = _write_parquet(_rows_by_kind(parts), sealed_file(run, node))
    if sealed:
        # Without an overview, a report of many nodes is the same but takes longer.
        with contextlib.suppress(OSError, DamagedError):
            _write_overview(run, node)
        for path in parts:
            for suffix in (".arrows", ".parquet"):
                path.with_suffix(suffix).unlink(missing_ok=True)
    return sealed


def _write_overview(run: Path, node: str) -> None:
    # Imported only in the child: Arrow's functions need 9 MB of memory.
    from teho.store.overview import overview_of

    overview = overview_of(run, node)
    if overview is not None:
        replace_file(overview_file(run, node), overview)


def _rows_by_kind(parts: list[Path]) -> Iterator[pa.Table]:
    """Yield the rows of each kind; only one kind is in memory at a time."""
    for kind in KINDS:
        tables = [read_part(path, kind=kind)[0] for path in parts]
        yield pa.concat_tables(tables) if tables else ROW_SCHEMA.empty_table()


def _write_parquet(tables: Iterator[pa.Table], path: Path) -> bool:
    """Write rows ordered by device and time: similar neighbours compress well.

    There is one row group for each kind, so that a reader of GPUs does not unpack the host's
    columns. With one row group for each device, short runs would consist mostly of metadata.

    Returns:
        Whether there were rows. Without rows, no file is written.
    """
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    wrote = False
    try:
        descriptor = open_private(temporary, exclusive=True)
        with (
            os.fdopen(descriptor, "wb") as file,
            pq.ParquetWriter(
                file,
                ROW_SCHEMA,
                compression="zstd",
                use_dictionary=_DICTIONARY_COLUMNS,
                column_encoding=_ENCODINGS,
                store_schema=True,
            ) as writer,
        ):
            for table in tables:
                if table.num_rows:
                    writer.write_table(in_order(table), row_group_size=1 << 24)
                    wrote = True
        if wrote:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return wrote


_DICTIONARY_COLUMNS = [
    field.name
    for field in ROW_SCHEMA
    if pa.types.is_string(field.type) or pa.types.is_float32(field.type)
]
# Counters and time stamps increase evenly: their differences are small and similar.
_ENCODINGS = {
    field.name: "DELTA_BINARY_PACKED"
    for field in ROW_SCHEMA
    if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
} | {field.name: "BYTE_STREAM_SPLIT" for field in ROW_SCHEMA if pa.types.is_float64(field.type)}
