"""Structs as rows of a table: CSV for spreadsheets, Parquet for DuckDB and pandas."""

from __future__ import annotations

import csv
import enum
import io
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec

from teho.model.digest import JobLine

__all__ = ["csv_text", "parquet_bytes"]


def csv_text(lines: Sequence[JobLine]) -> str:
    """Write jobs as CSV, with a header. Times are in UTC, and unknown values are empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = JobLine.__struct_fields__
    writer.writerow(names)
    for line in lines:
        writer.writerow([_text(getattr(line, name)) for name in names])
    return stream.getvalue()


def _text(value: Any) -> str | float | int:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, str):
        return _sound(value)
    return value if isinstance(value, (int, float)) else str(value)


def _sound(text: str) -> str:
    """Escape bytes that are not text, and signs with which a spreadsheet begins a formula."""
    text = text.encode(errors="backslashreplace").decode()
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} and text else text


def parquet_bytes(lines: Sequence[JobLine]) -> bytes:
    """Write jobs as a Parquet file. Times are in UTC; unknown values are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(field.name, _arrow_type(field)) for field in _fields()])
    columns = [
        pa.array([_value(getattr(line, field.name)) for line in lines], field.type)
        for field in schema
    ]
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), stream)
    data: bytes = stream.getvalue().to_pybytes()
    return data


def _fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(JobLine)


def _arrow_type(field: msgspec.structs.FieldInfo) -> Any:
    import pyarrow as pa

    name = str(field.type)
    if "datetime" in name:
        return pa.timestamp("us", tz="UTC")
    if "tuple" in name:
        return pa.list_(pa.string())
    if "float" in name:
        return pa.float64()
    return pa.int64() if "int" in name else pa.string()


def _value(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return list(value) if isinstance(value, tuple) else value
