"""From streams to Parquet: a part that has grown large, and the whole recording at its end.

Arrow's Parquet code and what it unpacks are 50 to 100 MB of memory, for half a second now
and then. It runs in a child of the recorder, which gives all of it back.
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
    """Turn a finished stream into a compact Parquet part beside it; the stream then goes.

    Raises:
        OSError: the part cannot be written; the stream stays.
        DamagedError: the stream does not read.
    """
    _write_parquet(_rows_by_kind([path]), path.with_suffix(".parquet"))
    path.unlink(missing_ok=True)


def seal(run: Path, node: str) -> bool:
    """Join a node's live parts into one Parquet file, sorted by device and time.

    Returns whether there was anything to seal. The live parts go only after the
    sealed file stands, so a kill in between loses nothing.

    Raises:
        OSError: the sealed file cannot be written; the live parts stay.
        DamagedError: a part does not read.
    """
    parts = live_parts(run, node)
    sealed = _write_parquet(_rows_by_kind(parts), sealed_file(run, node))
    if sealed:
        # Without it reports of many nodes take longer, and say the same.
        with contextlib.suppress(OSError, DamagedError):
            _write_overview(run, node)
        for path in parts:
            for suffix in (".arrows", ".parquet"):
                path.with_suffix(suffix).unlink(missing_ok=True)
    return sealed


def _write_overview(run: Path, node: str) -> None:
    # In the child alone: Arrow's functions are 9 MB that the recorder can do without.
    from teho.store.overview import overview_of

    overview = overview_of(run, node)
    if overview is not None:
        replace_file(overview_file(run, node), overview)


def _rows_by_kind(parts: list[Path]) -> Iterator[pa.Table]:
    """Yield the rows of each kind, one kind in memory at a time."""
    for kind in KINDS:
        tables = [read_part(path, kind=kind)[0] for path in parts]
        yield pa.concat_tables(tables) if tables else ROW_SCHEMA.empty_table()


def _write_parquet(tables: Iterator[pa.Table], path: Path) -> bool:
    """Write rows device by device, each in order of time: like beside like is small.

    One row group for each kind, so that a reader of GPUs does not unpack the host's columns;
    not one for each device, which would make short runs mostly footer. Returns whether there
    was any row; without one, no file is written.
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
# Counters and time stamps grow steadily: their differences are small and alike.
_ENCODINGS = {
    field.name: "DELTA_BINARY_PACKED"
    for field in ROW_SCHEMA
    if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
} | {field.name: "BYTE_STREAM_SPLIT" for field in ROW_SCHEMA if pa.types.is_float64(field.type)}
