"""Pythons among a program's processes that did not let the probe in, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Uninstrumented", "is_about_probe"]

_PYTHON = re.compile(r"(python|pypy)[\d.]*$")


_LET_IN = "let the probe in"


class Uninstrumented:
    """What is seen of a node's processes."""

    def __init__(self) -> None:
        self._pids: frozenset[int] = frozenset()
        self._known: set[int] = set()
        self._flagged = ""
        self._other = ""

    def look(self, pids: frozenset[int]) -> None:
        """Look at the processes that were there the last time too: others may have just begun."""
        for pid in (pids & self._pids) - self._known if not self._flagged else ():
            self._known.add(pid)
            words = _command_of(pid)
            name = words[0].rpartition("/")[2] if words else ""
            if not _PYTHON.match(name):
                continue
            who = f"{_LET_IN}: {name} (process {pid})"
            if flag := _shutting_flag(words):
                self._flagged = f"{who} was started with {flag}, which shuts it out"
                return
            self._other = self._other or (
                f"{who} is older than Python 3.8, or runs where PYTHONPATH does not reach it, as "
                "after `env -i`, `sudo` or in a container"
            )
        self._pids = pids

    def sentence(self, *, is_any_in: bool) -> str:
        """Return which Python it was, for the report's notes; empty if none was seen.

        Args:
            is_any_in: whether a probe has said anything: a Python without such an option may be
                the one that it is in.
        """
        if is_any_in:
            return f"A Python program did not {self._flagged}" if self._flagged else ""
        said = self._flagged or self._other
        return f"No Python program {said}" if said else ""


def is_about_probe(note: str) -> bool:
    """Return whether a note of a recording is a sentence of `Uninstrumented`."""
    return note.startswith((f"No Python program {_LET_IN}", f"A Python program did not {_LET_IN}"))


def _command_of(pid: int) -> list[str]:
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it is gone
        return []
    return data.decode(errors="replace").split("\0")[:-1]


def _shutting_flag(words: list[str]) -> str:
    """Return the option of a Python that keeps `PYTHONPATH` or `site` from it; empty: none."""
    for option in _options(iter(words[1:])):
        if option in "IES":
            return f"-{option}"
    return ""


def _options(words: Iterator[str]) -> Iterator[str]:
    """Yield the letters of a Python's own options, until those of the program begin."""
    for word in words:
        if not re.match(r"-[^-]", word):
            return
        for number, letter in enumerate(word[1:], 2):
            if letter in "cm":
                return
            if letter in "WX":  # the rest, or the next word, is its value
                if number == len(word):
                    next(words, None)
                break
            yield letter
