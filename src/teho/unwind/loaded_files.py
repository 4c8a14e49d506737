"""The program and libraries that a process has loaded, from /proc/PID/maps."""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

__all__ = ["LoadedFiles", "Span"]


class Span(NamedTuple):
    """A part of a process's memory with code."""

    begin: int
    end: int
    offset: int
    """Place of its first byte in the file."""
    path: str
    """Path of the file as the process has it; `[vdso]`, or empty if the code is in no file."""
    device: str
    inode: int

    @property
    def name(self) -> str:
        """File name, such as `libc.so.6`."""
        return self.path.removesuffix(" (deleted)").rpartition("/")[2]


class LoadedFiles:
    """The code in the memory of a process.

    Args:
        directory: the process's directory in /proc.

    Raises:
        OSError: the process has ended, or it belongs to another user.
        ValueError: the file has another format.
    """

    def __init__(self, directory: str) -> None:
        self.spans: list[Span] = []
        """The parts with code, by address."""
        self.names: set[str] = set()
        """Names of all files in memory."""
        for line in Path(directory, "maps").read_bytes().splitlines():
            fields = line.split(None, 5)
            path = os.fsdecode(fields[5]) if fields[5:] else ""
            self.names.add(path.rpartition("/")[2])
            if b"x" not in fields[1]:
                continue
            begin, _, end = fields[0].partition(b"-")
            self.spans.append(
                Span(
                    int(begin, 16),
                    int(end, 16),
                    int(fields[2], 16),
                    path,
                    fields[3].decode("ascii"),
                    int(fields[4]),
                )
            )
        self._ranges: dict[str, tuple[int, int]] = {}
        self._begins = [span.begin for span in self.spans]

    def range_of(self, path: str) -> tuple[int, int]:
        """Return where the code of a file begins and ends; both 0 if it is not loaded."""
        if path not in self._ranges:
            own = [span for span in self.spans if span.path == path]
            self._ranges[path] = (own[0].begin, own[-1].end) if own else (0, 0)
        return self._ranges[path]

    def at(self, address: int) -> Span | None:
        """Return the part with an address; None if there is no code."""
        place = bisect_right(self._begins, address) - 1
        if place < 0 or address >= self.spans[place].end:
            return None
        return self.spans[place]
