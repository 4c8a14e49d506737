"""The costly options of the processes of a node, for the file of the stack sampler."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from teho.model.stack import Frame, is_library
from teho.patterns import lazy_pattern
from teho.source.options.files import OwnFiles
from teho.source.options.search import OptionSearch
from teho.source.parsed import Parse

__all__ = ["SearchBudget", "content_of", "option_lines"]

_PACKAGES = lazy_pattern(r"(.*/(?:site|dist)-packages)/")
_LONGEST_BYTES = 1 << 20
_MOST = 50
"""Maximum number of options of a process."""


class SearchBudget:
    """The time that a search in the source may take.

    At the end of a run, other processes may use all cores: then the CPU time is the smaller one.

    Args:
        cpu_s: CPU time of the thread that makes the search.
        wall_s: wall time.
    """

    def __init__(self, cpu_s: float, wall_s: float) -> None:
        self._until_cpu_s = time.thread_time() + cpu_s
        self._until_s = time.monotonic() + wall_s

    @property
    def is_spent(self) -> bool:
        """Whether the search has to end."""
        return time.thread_time() > self._until_cpu_s or time.monotonic() > self._until_s


def option_lines(
    times: Mapping[tuple[str, int], Counter[int]],
    stacks: Sequence[Sequence[Frame]],
    numbers: Mapping[Frame, int],
    read: Callable[[int, str], list[bytes]],
    parse: Parse,
    budget: SearchBudget,
    packages: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Yield the costly options of each process, as the file of the stack sampler has them.

    Args:
        times: process and its pid -> stack -> its time, in ms.
        stacks: the frames of each stack, innermost frame first.
        numbers: frame -> its number in the file.
        read: returns the lines of a file as a process sees it.
        parse: parses the content of a file.
        budget: the time for the search.
        packages: folders with libraries that the processes have loaded.
    """
    seen = {
        key: [stacks[stack] for stack in of_process if stack >= 0]
        for key, of_process in times.items()
    }
    pids: dict[str, int] = {}
    for (_, pid), of_process in seen.items():
        pids = dict.fromkeys(_own(of_process), pid) | pids

    def content(path: str) -> bytes | bool | None:
        if budget.is_spent:
            return False
        if path in pids:
            return b"\n".join(read(pids[path], path)) or False
        return content_of(path)

    own = OwnFiles(sorted(pids), content, cache(lambda: _installed(numbers, packages)), parse)
    search = OptionSearch(own)
    for (process, _), of_process in seen.items():
        if budget.is_spent:
            return
        lines = []
        for one in search.found(of_process, own.reached(_own(of_process)))[:_MOST]:
            line = msgspec.to_builtins(one)
            line["lines"] = [numbers[frame] for frame in one.lines]
            lines.append(line)
        if lines:
            yield {"process": process, "costly_options": lines}


def _own(stacks: Iterable[Sequence[Frame]]) -> list[str]:
    """Return the program's files on some stacks."""
    return sorted({frame.file for stack in stacks for frame in stack if not is_library(frame.file)})


def content_of(path: str) -> bytes | bool | None:
    """Return a file that is on no stack. The process may have ended: this process reads it.

    None: there is no such file. False: it cannot be read, or it is too long.
    """
    try:
        found = Path(path)
        if is_library(path) or not found.is_file():
            return None
        return False if found.stat().st_size > _LONGEST_BYTES else found.read_bytes()
    except OSError:
        return False


def _installed(frames: Iterable[Frame], packages: Iterable[str]) -> frozenset[str]:
    """Return the names of the installed modules, as far as their folders are known."""
    folders = {match[1] for frame in frames if (match := _PACKAGES.match(frame.file))}
    folders.update(packages)
    return frozenset(one.partition(".")[0] for folder in folders for one in _names_in(folder))


def _names_in(folder: str) -> Iterable[str]:
    try:
        return [one.name for one in Path(folder).iterdir()]
    except OSError:
        return ()
