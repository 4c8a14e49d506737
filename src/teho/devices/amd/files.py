"""One fact in one sysfs file of an AMD GPU, and why there is none if there is none."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from teho.devices.procfile import read_text
from teho.model.missing import Missing, Reason

__all__ = [
    "FOR_GOOD",
    "hexadecimal_in",
    "names_in",
    "number_in",
    "optional_number",
    "parse_number",
    "properties_in",
    "read_number",
    "why_missing",
]

FOR_GOOD = (Reason.UNSUPPORTED, Reason.ABSENT)
"""Reasons that will not pass: what is missing for one of them is not asked again."""

_REASONS = {
    errno.ENOENT: Reason.ABSENT,
    errno.EACCES: Reason.FORBIDDEN,
    errno.EPERM: Reason.FORBIDDEN,
    errno.EOPNOTSUPP: Reason.UNSUPPORTED,
}
_HEXADECIMAL = re.compile(r"(0x)?[0-9a-fA-F]{1,16}")
_PROPERTY = re.compile(r"^(\w+) (\d{1,20})$", re.MULTILINE)
_ANSWER_BYTES = 64
"""More than any number takes, so that none is cut short."""
_MOST_DIGITS = 18
"""What surely fits a signed 64-bit column; no true answer comes near it."""


def parse_number(answer: bytes) -> int:
    """Return the whole number that a file holds.

    Raises:
        ValueError: it holds anything else, or more digits than a true answer has.
    """
    text = answer.strip()
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        words = text.decode("ascii", "backslashreplace")
        raise ValueError(f"'{words}' is not a number in range")
    return int(text)


def read_number(descriptor: int) -> int:
    """Read the whole number in a file that is open, again at every call.

    Raises:
        OSError: the kernel refuses.
        ValueError: what it answers is not a number.
    """
    return parse_number(os.pread(descriptor, _ANSWER_BYTES, 0))


def number_in(path: str) -> int:
    """Open, read and close a file that holds one whole number.

    Raises:
        OSError: the kernel refuses.
        ValueError: what it answers is not a number.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return read_number(descriptor)
    finally:
        os.close(descriptor)


def optional_number(path: str) -> int | None:
    """Return the whole number in a file, or None if there is none."""
    try:
        return number_in(path)
    except (OSError, ValueError):
        return None


def hexadecimal_in(path: str) -> int:
    """Return the number that a file holds in base 16; 0 if there is none."""
    text = read_text(Path(path))
    return int(text, 16) if _HEXADECIMAL.fullmatch(text) else 0


def properties_in(path: str) -> dict[str, int]:
    """Return what a `properties` file of KFD's topology says: one name and number a line.

    Raises:
        OSError: the kernel refuses; EPERM is how KFD hides a GPU that is not the job's.
    """
    text = Path(path).read_text("ascii", "replace")
    return {key: int(value) for key, value in _PROPERTY.findall(text)}


def names_in(directory: str) -> list[str]:
    """Return the names in a folder; none if it cannot be listed."""
    try:
        return [entry.name for entry in Path(directory).iterdir()]
    except OSError:
        return []


def why_missing(error: OSError, what: str) -> Missing:
    """Return why a file did not open or read, as a value."""
    code = error.errno or 0
    return Missing(_REASONS.get(code, Reason.FAILED), f"{what}: {os.strerror(code)}")
