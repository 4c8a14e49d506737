"""What the program's source shows about the stacks of a node, at the end of a run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from teho.model.watched import ColumnFilter, Frame, Repeated, is_library
from teho.source.parsed import SourceFile, parsed
from teho.source.program import Program
from teho.source.purity import Purity
from teho.source.queries import find_column_filter
from teho.source.repeated import find_repeated

__all__ = ["source_lines"]

_SHARE = 0.005
"""A stack with less than this share of a process's time is not searched."""
_MOST_S = 0.5
"""Maximum time for all stacks."""

_Found = tuple[list[Repeated], "ColumnFilter | None"]


def source_lines(
    times: Mapping[tuple[str, int], Counter[int]],
    stacks: Sequence[Sequence[Frame]],
    numbers: Mapping[Frame, int],
    read: Callable[[int, str], list[bytes]],
) -> Iterator[dict[str, Any]]:
    """Yield lines for the file of the stack sampler.

    Only files of the program that are on the stacks are read. Stacks of several processes that
    are the same, such as those of the ranks, are searched once.

    Args:
        times: process and its pid -> stack -> its time, in ms.
        stacks: the frames of each stack, innermost frame first.
        numbers: frame -> its number in the file.
        read: returns the lines of a file as a process sees it.
    """
    until_s = time.monotonic() + _MOST_S
    own = {frame.file for frame in numbers if not is_library(frame.file)}
    known: dict[tuple[Frame, ...], _Found] = {}
    for (process, pid), of_process in times.items():
        purity = Purity(Program(_reader(pid, own, read)))
        repeated: dict[tuple[tuple[Frame, ...], Frame], dict[str, Any]] = {}
        filters: dict[int, str] = {}
        least_ms = _SHARE * of_process.total()
        for stack, time_ms in of_process.most_common():
            if time_ms < least_ms or time.monotonic() > until_s:
                break
            if stack < 0:  # the file had no room for these stacks
                continue
            frames = stacks[stack]
            key = _beside_own(frames)
            if key not in known:
                known[key] = (
                    find_repeated(frames, purity), find_column_filter(frames, purity.program)
                )  # fmt: skip
            for one in known[key][0]:
                line = msgspec.to_builtins(one)
                line["calls"] = [numbers[frame] for frame in one.calls]
                repeated[one.calls, one.loop] = line
            if query := known[key][1]:
                filters[numbers[query.frame]] = query.text
        if repeated:
            yield {"process": process, "repeated": list(repeated.values())}
        if filters:
            yield {"process": process, "column_filters": list(filters.items())}


def _reader(
    pid: int, own: set[str], read: Callable[[int, str], list[bytes]]
) -> Callable[[str], SourceFile | None]:
    def parsed_file(path: str) -> SourceFile | None:
        lines = read(pid, path) if path in own else []
        return parsed(b"\n".join(lines)) if lines else None

    return parsed_file


def _beside_own(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the program's functions of a stack, and the library functions that they call."""
    is_own = [not is_library(frame.file) for frame in frames]
    outer = [*is_own, False][1:]
    return tuple(
        frame for frame, own, caller in zip(frames, is_own, outer, strict=True) if own or caller
    )
