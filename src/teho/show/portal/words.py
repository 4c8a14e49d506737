"""Figures and fixed words of the portal as text."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from teho.show.cells import format_moment
from teho.units import format_duration, format_quantity

__all__ = [
    "NOT_KNOWN",
    "OUTCOMES",
    "finding_text",
    "gpu_text",
    "moment_text",
    "quantity_text",
    "seconds_text",
]

NOT_KNOWN = "–"
"""A figure that is not known."""

OUTCOMES = {
    "running": "Running",
    "ok": "Ended well",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "imported": "Imported",
    "damaged": "Damaged",
}


_ABBREVIATIONS = {
    word.lower(): word
    for word in ("GPU", "GPUs", "CPU", "CPUs", "IO", "NUMA", "NCCL", "MIG", "ECC", "NFS", "SM")
}


def finding_text(kind: str) -> str:
    """Write the kind of a finding in words: `gpu_never_used` as `GPU never used`."""
    words = [_ABBREVIATIONS.get(word, word) for word in kind.replace("_", " ").split()]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def gpu_text(model: str) -> str:
    """Write the model of a GPU without the name of its maker."""
    return re.sub(r"\b(NVIDIA|AMD|Instinct|Tesla) ", "", model)


def moment_text(moment_s: float) -> str:
    """Write a time, given in seconds since 1970, in local time."""
    return format_moment(datetime.fromtimestamp(moment_s, timezone.utc))


def seconds_text(seconds: float | None) -> str:
    """Write a length of time in s; a dash if it is not known."""
    return NOT_KNOWN if seconds is None else format_duration(seconds)


def quantity_text(value: float | None, unit: str) -> str:
    """Write a number with its unit; a dash if it is not known."""
    return NOT_KNOWN if value is None else format_quantity(value, unit)
