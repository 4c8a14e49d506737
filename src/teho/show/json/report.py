"""A document as JSON.

docs/generate.py makes `report.schema.json` and docs/report-json.md from the classes of
`teho.model.document`; a test compares them.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from teho.model.document import Document
from teho.model.missing import Missing, Reason

__all__ = ["render_json"]

_NOT_FINITE = msgspec.to_builtins(Missing(Reason.FAILED, "not a finite number"))
_MOST_INDENTED = 4 * 1024**2
"""Size in bytes up to which the output is indented; indented output is three times as large."""


def render_json(document: Document) -> str:
    r"""Render a document as JSON; ends in a line break. `schema` describes a report.

    JSON has no numbers that are not finite: in a plot they become `null`, as values that were not
    recorded, and elsewhere a missing value. A byte of a command line that is not text is escaped,
    as `\udcff`. The output is indented, unless it is large.
    """
    encoded = bytearray()
    msgspec.json.Encoder().encode_into(_sound(msgspec.to_builtins(document)), encoded)
    if len(encoded) <= _MOST_INDENTED:
        encoded = bytearray(msgspec.json.format(bytes(encoded), indent=2))
    encoded += b"\n"  # in place: the output of a large job has 40 MB
    return encoded.decode()


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else _NOT_FINITE
    if isinstance(value, dict):
        # The millions of points are finite already.
        return {
            key: inner
            if key in {"values", "elapsed_s"} and isinstance(inner, list)
            else _sound(inner)
            for key, inner in value.items()
        }
    return [_sound(item) for item in value] if isinstance(value, (list, tuple)) else value
