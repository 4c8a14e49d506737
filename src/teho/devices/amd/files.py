"""Single values in sysfs files of an AMD GPU, and the reasons for missing ones."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from teho.devices.procfile import read_text, slurp
from teho.model.missing import Missing, Reason

__all__ = [
    "FOR_GOOD",
    "hexadecimal_in",
    "number_in",
    "optional_number",
    "parse_number",
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
_HEXADECIMAL = re.compile(r"(0x)?[0-9a-fA-F]{1,16}")
_PROPERTY = re.compile(r"^(\w+) (\d{1,20})$", re.MULTILINE)
_MOST_DIGITS = 18
"""Numbers with this many digits fit a signed 64-bit column. Real values are smaller."""


def parse_number(answer: bytes) -> int:
    """Return the whole number in a file's content.

    Raises:
        ValueError: the content is not a number, or has too many digits.
    """
    text = answer.strip()
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        words = text.decode("ascii", "backslashreplace")
        raise ValueError(f"'{words}' is not a number in range")
    return int(text)


def number_in(path: str) -> int:
    """Open, read and close a file with one whole number.

    Raises:
        OSError: the kernel refuses.
        ValueError: the content is not a number.
    """
    return parse_number(slurp(path))


def optional_number(path: str) -> int | None:
    """Return the whole number in a file; None if it cannot be read."""
    try:
        return number_in(path)
    except (OSError, ValueError):
        return None


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
