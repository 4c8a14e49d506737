"""Finds Python processes of a program that do not load the probe, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from teho.patterns import lazy_pattern

__all__ = ["Uninstrumented", "is_about_probe"]

_PYTHON = lazy_pattern(r"(python|pypy)[\d.]*$")
_NONE = "No Python program loaded the probe"
_NOT_ALL = "A Python program did not load the probe"
_OLD_NOTES = ("No Python program let the probe in", "A Python program did not let the probe in")
"""The same sentences in older recordings."""


class Uninstrumented:
    """The Python processes of a node that do not load the probe."""

    def __init__(self) -> None:
        self._pids: frozenset[int] = frozenset()
        self._known: set[int] = set()
        self._flagged = ""
        self._other = ""

    def check(self, pids: frozenset[int]) -> None:
        """Check the processes that existed at the last call too: new ones may be starting."""
        for pid in (pids & self._pids) - self._known if not self._flagged else ():
            self._known.add(pid)
            words = _command_of(pid)
            name = words[0].rpartition("/")[2] if words else ""
            if not _PYTHON.match(name):
                continue
            who = f"{name} (process {pid})"
            if option := _blocking_option(words):
                self._flagged = f"{who} was started with {option}, so Python did not load the probe"
                return
            self._other = self._other or (
                f"{who} is older than Python 3.8, or does not get PYTHONPATH (for example after "
                "`env -i` or `sudo`, or in a container)"
            )
        self._pids = pids

    def sentence(self, *, is_any_in: bool) -> str:
        """Return a note for the report with one such process; empty if there is none.

        Args:
            is_any_in: whether any probe has written. A Python process without a blocking option
                may then be the one that loaded it.
        """
        if is_any_in:
            return f"{_NOT_ALL}: {self._flagged}" if self._flagged else ""
        found = self._flagged or self._other
        return f"{_NONE}: {found}" if found else ""


def is_about_probe(note: str) -> bool:
    """Return whether a note of a recording is a sentence of `Uninstrumented`."""
    return note.startswith((_NONE, _NOT_ALL, *_OLD_NOTES))


def _command_of(pid: int) -> list[str]:
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return []
    return data.decode(errors="replace").split("\0")[:-1]


def _blocking_option(words: list[str]) -> str:
    """Return the option of Python that ignores `PYTHONPATH` or skips `site`; empty: none."""
    for option in _options(iter(words[1:])):
        if option in "IES":
            return f"-{option}"
    return ""


def _options(words: Iterator[str]) -> Iterator[str]:
    """Yield the letters of Python's options, until the program's options begin."""
    for word in words:
        if not re.match(r"-[^-]", word):
            return
        for number, letter in enumerate(word[1:], 2):
            if letter in "cm":
                return
            if letter in "WX":  # its value is the rest of the word, or the next word
                if number == len(word):
                    next(words, None)
                break
            yield letter
