"""What the program's source shows about the stacks of a node, at the end of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec

from teho.model.in_source import ColumnFilter, CostlyOption, InLoop, MissingIndex
from teho.model.stack import Frame, is_library
from teho.observe.option_lines import SearchBudget, content_of, option_lines
from teho.source.connections import find_reopened
from teho.source.database.tables import Tables
from teho.source.in_turn import find_in_turn
from teho.source.parsed import Parse, SourceFile, parsed
from teho.source.plans.search import find_plan
from teho.source.program import Program
from teho.source.purity import Purity
from teho.source.queries import find_column_filter, find_missing_index
from teho.source.repeated import find_repeated
from teho.source.slow_calls.search import find_slow_calls
from teho.source.unneeded import Needs
from teho.source.wholes import find_whole

__all__ = ["source_lines"]

_SHARE = 0.005
"""A stack with less than this share of a process's time is not searched."""
_MOST_CPU_S, _MOST_S = 0.5, 3.0
"""Maximum CPU time and wall time for all stacks."""


class _Found(NamedTuple):
    """What the source shows about a stack."""

    in_loops: dict[str, Sequence[InLoop | None]]
    """By their name in the file."""
    column_filter: ColumnFilter | None
    missing_index: MissingIndex | None
    slow_calls: Sequence[CostlyOption]


def source_lines(
    times: Mapping[tuple[str, int], Counter[int]],
    stacks: Sequence[Sequence[Frame]],
    numbers: Mapping[Frame, int],
    read: Callable[[int, str], list[bytes]],
    packages: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Yield lines for the file of the stack sampler.

    Only files of the program that are on the stacks are read; for the tables of a database, also
    the files that these files import. Stacks of several processes that are the same, such as those
    of the ranks, are searched once.

    Args:
        times: process and its pid -> stack -> its time, in ms.
        stacks: the frames of each stack, innermost frame first.
        numbers: frame -> its number in the file.
        read: returns the lines of a file as a process sees it.
        packages: folders with libraries that the processes have loaded.
    """
    budget = SearchBudget(_MOST_CPU_S, _MOST_S)
    own = {frame.file for frame in numbers if not is_library(frame.file)}
    known: dict[tuple[Frame, ...], _Found] = {}
    parse = cache(parsed)  # ranks have the same files, and the options are searched after the calls
    for (process, pid), of_process in times.items():
        purity = Purity(Program(_reader(pid, own, read, parse)))
        needs = Needs(purity)
        in_loops: defaultdict[str, dict[object, dict[str, Any]]] = defaultdict(dict)
        filters: dict[int, str] = {}
        missing: dict[int, dict[str, Any]] = {}
        slow: dict[tuple[object, ...], dict[str, Any]] = {}
        tables = cache(partial(_tables, purity.program, own, parse))
        least_ms = _SHARE * of_process.total()
        for stack, time_ms in of_process.most_common():
            if time_ms < least_ms or budget.is_spent:
                break
            if stack < 0:  # the file had no room for these stacks
                continue
            frames = stacks[stack]
            key = _own_and_called(frames)
            if key not in known:
                known[key] = _Found(
                    _in_loops(frames, purity, needs),
                    find_column_filter(frames, purity.program),
                    find_missing_index(frames, purity.program, tables),
                    list(find_slow_calls(frames, purity)),
                )
            for name, calls in known[key].in_loops.items():
                for one in filter(None, calls):
                    in_loops[name][one.calls, one.loop] = _line(one, numbers)
            if query := known[key].column_filter:
                filters[numbers[query.frame]] = query.text
            if lacking := known[key].missing_index:
                line = msgspec.to_builtins(lacking)
                line["frame"] = numbers[lacking.frame]
                missing[line["frame"]] = line
            for call in known[key].slow_calls:
                _add_slow_call(slow, call, numbers)
        for name, found in in_loops.items():
            yield {"process": process, name: list(found.values())}
        if filters:
            yield {"process": process, "column_filters": list(filters.items())}
        if missing:
            yield {"process": process, "missing_indexes": list(missing.values())}
        if slow:
            yield {"process": process, "costly_options": list(slow.values())}
    yield from option_lines(times, stacks, numbers, read, parse, budget, packages)


def _in_loops(
    frames: Sequence[Frame], purity: Purity, needs: Needs
) -> dict[str, Sequence[InLoop | None]]:
    """Return what the source shows about the calls of a stack that are in loops."""
    repeated = find_repeated(frames, purity)
    return {
        "repeated": repeated,
        "unneeded": needs.find(frames),
        "repeated_plans": [] if repeated else [find_plan(frames, purity)],
        "reopened": [find_reopened(frames, purity)],
        "in_turn": [find_in_turn(frames, purity)],
        "wholes": [find_whole(frames, purity, needs.uses_of)],
    }


def _line(one: InLoop, numbers: Mapping[Frame, int]) -> dict[str, Any]:
    """Return a call in a loop as it is written: with the numbers of its frames."""
    line: dict[str, Any] = msgspec.to_builtins(one)
    return {**line, "calls": [numbers[frame] for frame in one.calls]}


def _add_slow_call(
    found: dict[tuple[object, ...], dict[str, Any]],
    call: CostlyOption,
    numbers: Mapping[Frame, int],
) -> None:
    """Add a call for which there is a faster way; several stacks may show the same call."""
    key = call.name, call.at, *sorted(call.words.items())
    line = found.setdefault(key, {**msgspec.to_builtins(call), "lines": []})
    new = [numbers[frame] for frame in call.lines if numbers[frame] not in line["lines"]]
    line["lines"] += new


def _reader(
    pid: int, own: set[str], read: Callable[[int, str], list[bytes]], parse: Parse
) -> Callable[[str], SourceFile | None]:
    def parsed_file(path: str) -> SourceFile | None:
        lines = read(pid, path) if path in own else []
        return parse(b"\n".join(lines)) if lines else None

    return parsed_file


def _tables(program: Program, own: set[str], parse: Parse) -> Tables:
    """Return the tables of a program, also of files that it imports but that are on no stack."""
    files = {path: file for path in sorted(own) if (file := program.file(path)) is not None}

    def imported(path: str) -> SourceFile | bool | None:
        content = content_of(path)
        return parse(content) or False if isinstance(content, bytes) else content

    return Tables(files, imported)


def _own_and_called(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the program's functions of a stack, and the library functions that they call."""
    is_own = [not is_library(frame.file) for frame in frames]
    outer = [*is_own, False][1:]
    return tuple(
        frame for frame, own, caller in zip(frames, is_own, outer, strict=True) if own or caller
    )
