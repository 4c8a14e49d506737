"""Single values in sysfs files of an AMD GPU, and the reasons for missing ones."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from teho.devices.procfile import read_text
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = [
    "FOR_GOOD",
    "hexadecimal_in",
    "properties_in",
    "why_missing",
]

FOR_GOOD = (Reason.UNSUPPORTED, Reason.ABSENT)
"""Reasons that do not change. A value that is missing for one of them is not read again."""

_REASONS = {
    errno.ENOENT: Reason.ABSENT,
    errno.EACCES: Reason.FORBIDDEN,
    errno.EPERM: Reason.FORBIDDEN,
    errno.EOPNOTSUPP: Reason.UNSUPPORTED,
}
_HEXADECIMAL = lazy_pattern(r"(0x)?[0-9a-fA-F]{1,16}")
_PROPERTY = lazy_pattern(r"^(\w+) (\d{1,20})$", re.MULTILINE)


def hexadecimal_in(path: str) -> int:
    """Return the hexadecimal number in a file; 0 if it cannot be read."""
    text = read_text(Path(path))
    return int(text, 16) if _HEXADECIMAL.fullmatch(text) else 0


def properties_in(path: str) -> dict[str, int]:
    """Return the names and numbers in a `properties` file of KFD's topology.

    Raises:
        OSError: the kernel refuses. With EPERM, KFD hides a GPU of another job.
    """
    text = Path(path).read_text("ascii", "replace")
    return {key: int(value) for key, value in _PROPERTY.findall(text)}


def why_missing(error: OSError | ValueError, what: str) -> Missing:
    """Return a missing value that says why a file cannot be opened or read, or has no number."""
    if isinstance(error, ValueError):
        return Missing(Reason.FAILED, f"{what}: {error}")
    code = error.errno or 0
    return Missing(_REASONS.get(code, Reason.FAILED), f"{what}: {os.strerror(code)}")
