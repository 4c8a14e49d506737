"""Reads numbers and units as monitoring programs print them."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from teho.jobs.log import Value
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["UNITS", "Metrics", "csv_cells", "missing_of", "number_of", "values_of", "whole_of"]

Metrics = Mapping[str, tuple[str, float]]
"""Name of a column -> its metric, and the factor for a number without a unit that Teho knows. If
two columns have the same metric, the later one is preferred."""

UNITS: Mapping[str, float] = {
    "%": 1.0,
    "w": 1.0,
    "mw": 1e-3,
    "c": 1.0,
    "°c": 1.0,
    "mhz": 1.0,
    "b": 1.0,
    "bytes": 1.0,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
    "j": 1.0,
    "mj": 1e-3,
}
"""Unit in small letters -> factor to the unit of Teho's metrics. `MB` is not here: NVIDIA and AMD
print MiB under this name."""

_NUMBER = lazy_pattern(
    r"\s*\(?(?P<number>[-+]?(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:[eE][-+]?\d+)?)\s*"
    r"(?P<unit>[%°A-Za-z/]*)\)?\s*"
)
_REASONS = {
    "": Reason.UNRECORDED,
    "-": Reason.UNSUPPORTED,
    "n/a": Reason.UNSUPPORTED,
    "na": Reason.UNSUPPORTED,
    "none": Reason.UNSUPPORTED,
    "nan": Reason.UNRECORDED,
    "not supported": Reason.UNSUPPORTED,
    "unsupported": Reason.UNSUPPORTED,
    "requested functionality has been deprecated": Reason.UNSUPPORTED,
    "not available": Reason.UNSUPPORTED,
    "insufficient permissions": Reason.FORBIDDEN,
    "no permission": Reason.FORBIDDEN,
    "unknown error": Reason.FAILED,
    "err!": Reason.FAILED,
    "error": Reason.FAILED,
    "gpu is lost": Reason.FAILED,
    "gpu requires reset": Reason.FAILED,
    "reset required": Reason.FAILED,
    "not found": Reason.FAILED,
}
"""A cell without a number, in small letters and without brackets -> what it means."""


def csv_cells(line: str, separator: str = ",") -> list[str]:
    """Return the cells of a line of CSV; empty if it is not CSV."""
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def missing_of(cell: str, tool: str) -> Missing | None:
    """Return what a cell without a number means; None if it is not such a cell.

    Args:
        cell: the text of the cell.
        tool: program that printed it, for the reason.
    """
    text = cell.strip()
    reason = _REASONS.get(text.strip("[]").strip().lower())
    if reason is None:
        return None
    return Missing(reason, f"{tool} printed {text}" if text else f"{tool} printed no value")


def number_of(cell: str, factor: float, tool: str) -> Value | None:
    """Return a cell as a number; None if it is neither a number nor a known other text.

    Args:
        cell: the text of the cell, with or without a unit. A decimal comma is allowed.
        factor: for a number without a unit that Teho knows.
        tool: program that printed it.
    """
    match = _NUMBER.fullmatch(cell)
    if match is None:
        return missing_of(cell, tool)
    return float(match["number"].replace(",", ".")) * UNITS.get(match["unit"].lower(), factor)


def values_of(cells: Mapping[str, str], metrics: Metrics, tool: str) -> dict[str, Value] | None:
    """Return the values of a row; None if a cell does not fit its column.

    Args:
        cells: by column.
        metrics: the columns that Teho uses.
        tool: program that printed them.
    """
    values: dict[str, Value] = {}
    for name, (metric, factor) in metrics.items():
        if name not in cells:
            continue
        value = number_of(cells[name], factor, tool)
        if value is None:
            return None
        if metric not in values or not isinstance(value, Missing):
            values[metric] = value
    return values


def whole_of(cell: str | None, factor: float, tool: str) -> int | None:
    """Return a fact, such as the size of a memory, as a whole number; None if it is not known."""
    value = number_of(cell, factor, tool) if cell else None
    return round(value) if isinstance(value, float) else None
