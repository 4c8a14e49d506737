"""Read variables of a job's environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from teho.errors import UnitError
from teho.patterns import lazy_pattern
from teho.schedulers.hostlist import is_number, qrsh_host
from teho.units import parse_bytes

__all__ = ["TOO_LARGE", "Variables"]

_MIB = 1024**2
TOO_LARGE = 1 << 60
"""1 EiB: no node has it, and integers of file formats are limited."""
_RANGE = lazy_pattern(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)


class Variables:
    """The environment, with a note for each value that is not as documented."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.notes: list[str] = []

    def named(self, prefix: str) -> list[str]:
        """Return the names that begin with a prefix."""
        return sorted(name for name in self.environment if name.startswith(prefix))

    @property
    def is_inherited(self) -> bool:
        """Whether `qrsh -inherit` started this on a node other than the job's first."""
        return qrsh_host(self.environment) != ""

    def text(self, *names: str) -> str | None:
        """Return the first of these variables that is set and not blank."""
        found = (self.environment.get(name, "").strip() for name in names)
        return next((text for text in found if text), None)

    def count(self, *names: str) -> int | None:
        """Return the first variable that is set, as a whole number from 0."""
        return self._read(names, "a whole number", _count)

    def memory_bytes(self, *names: str) -> int | None:
        """Return the first variable that is set, in bytes. A number without a unit is MiB."""
        return self._read(names, "a number of MiB", _mebibytes)

    def items(self, *names: str) -> int | None:
        """Return the length of the list in the first variable that is set: `0,1`, `0-3`."""
        return self._read(names, "a list of GPUs such as 0,1 or 0-3", _list_length)

    def _read(
        self, names: tuple[str, ...], expected: str, parse: Callable[[str], int | None]
    ) -> int | None:
        for name in names:
            text = self.text(name)
            if text is None:
                continue
            value = parse(text)
            if value is not None:
                return value
            self.notes.append(f"{name} was not used: its value {text[:60]!r} is not {expected}.")
        return None


def _count(text: str) -> int | None:
    return int(text) if is_number(text) else None


def _mebibytes(text: str) -> int | None:
    try:
        amount = int(text) * _MIB if is_number(text) else parse_bytes(text[:20])
    except (UnitError, ValueError, OverflowError):
        return None
    return amount if amount < TOO_LARGE else None


def _list_length(text: str) -> int | None:
    """Return the length of a comma-separated list with names and ranges; None: not a list."""
    total = 0
    for item in text.split(","):
        if match := _RANGE.fullmatch(item.strip()):
            first, last = int(match.group(1)), int(match.group(2) or match.group(1))
            if last < first:
                return None
            total += last - first + 1
        elif re.fullmatch(r"[\w.:/-]+", item.strip()):
            total += 1
        else:
            return None
    return total
