"""The time of a program that costly options in its source explain."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from teho.explain.activities import stacks_of_others
from teho.explain.program_context import ProgramContext
from teho.explain.where import BACKWARD, IMPORTS, LineTimes, doing_of, place_of
from teho.explain.wording import listed
from teho.model.in_source import CostlyOption
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen, State, is_library
from teho.patterns import lazy_pattern
from teho.source.options.table import Option, costly_options

__all__ = [
    "FoundOption",
    "OptionTime",
    "found_of_rule",
    "in_words",
    "is_worth_naming",
    "lines_of_option",
    "option_of_rule",
    "option_times",
    "options_of_rule",
    "options_on_gpus",
]

_TIMES_LARGER = 4
"""If the unused columns are less than 4 times as large as the used ones, reading only the used ones
would save little."""
_MOST_COLUMNS = 3
"""Number of columns that the report names."""
_NAME = lazy_pattern(r"'([^']+)'")
_TRACES = lazy_pattern(
    r"/jax/_src/|/torch/_dynamo/(convert_frame|symbolic_convert|output_graph)\.py"
)
"""Files of libraries that call a line of the program only to trace or compile it."""
_NATIVE = (State.NATIVE, State.THREADS)
_LEAST_BESIDE = 0.03
"""Least part of the time in the functions that show that the option costs time: the other functions
need about ten times as long for what these make."""
_WAITS = (State.NETWORK, State.PROCESS, State.WAITING)
"""States of a thread that waits for data on a connection."""
_REPEATS = 3.0
"""Times the time of a method that is called once, from which the other one is called again."""


class OptionTime(NamedTuple):
    """Time of a program that an option explains."""

    option: Option
    places: Sequence[Frame]
    """Where the option is; the place whose lines took the most time is first."""
    words: Mapping[str, str]
    """Parts of the program's source that the advice names."""
    wall_s: float
    """Time of the main thread, or waiting for processes that did this work."""
    lines: Sequence[tuple[Frame, float]]
    """The program's lines that led to it, with the wall time of each in s, longest first."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Wall time of each of its stacks, in s."""
    in_loading: bool
    """Whether most of it was in loading data."""
    long_calls_percent: float
    """Share of this work in which native code ran in long calls, without backward passes: these are
    one call of many short operations."""


class FoundOption(NamedTuple):
    """An option that a rule does not judge only by its time, but also by other values."""

    option: Option
    places: Sequence[Frame]
    words: Mapping[str, str]
    seconds: float
    """Time of the lines that use it, on the main thread; 0 if they are on no stack."""


def options_on_gpus(main: MainProcess) -> list[FoundOption]:
    """Return the options that make the work of a GPU slow, in the order of the table.

    If the table names functions that the option changes, one of them must be on a stack.
    """
    return [
        _found_option(option, places, main)
        for option, places in _options(main)
        if option.gpu and (not option.files or _is_on_a_stack(option, main))
    ]


def found_of_rule(main: MainProcess, rule: str) -> list[FoundOption]:
    """Return the options that another rule names, in the order of the table.

    Args:
        main: the process.
        rule: the kind of the rule.
    """
    return [
        _found_option(option, places, main)
        for option, places in _options(main)
        if option.rule == rule
    ]


def _found_option(option: Option, places: Sequence[CostlyOption], main: MainProcess) -> FoundOption:
    lines = frozenset(line for one in places for line in one.lines)
    seconds = sum(seen.wall_s for seen in main.process.stacks if _executes(lines, seen.frames))
    return FoundOption(option, [one.at for one in places], places[0].words, seconds)


def _is_on_a_stack(option: Option, main: MainProcess) -> bool:
    return any(_is_in(option.name, seen.frames) for seen in main.process.stacks)


def _executes(lines: frozenset[Frame], frames: Sequence[Frame]) -> bool:
    """Return whether a stack executes one of some lines, and does not only trace or compile it."""
    at = next((number for number, frame in enumerate(frames) if frame in lines), None)
    return at is not None and not any(_TRACES.search(frame.file) for frame in frames[at:])


def option_times(main: MainProcess, rule: str = "") -> list[OptionTime]:
    """Return the time of each costly option of a program, longest first.

    Args:
        main: the process.
        rule: the kind of the rule that names the options; empty: `option_costly`.
    """
    found = []
    for option, places in _options(main):
        if option.rule != rule or option.gpu:
            continue
        if (time := _time(option, places, main)) is not None:
            found.append(time)
    # What names the columns says more than the conversion of the same rows.
    return sorted(found, key=lambda one: (not one.option.columns, -one.wall_s))


def is_worth_naming(
    context: ProgramContext, main: MainProcess, seconds: float, large: tuple[float, float]
) -> bool:
    """Return whether an option costs enough time to report it.

    Args:
        context: the run.
        main: the process.
        seconds: the time that the option explains.
        large: share in % and time in s from which a large share needs only few samples.
    """
    share = 100 * seconds / context.work_s(main)
    is_large = share >= large[0] and seconds >= large[1]
    return is_large or context.is_loss(seconds, main)


def option_of_rule(main: MainProcess, rule: str, activity: str = "") -> str | None:
    """Return the advice about an option that another rule names; None: none was found.

    Args:
        main: the process.
        rule: the kind of the rule.
        activity: for the rule `known_activity`: the name of the activity.
    """
    for option, places in _options(main):
        if option.rule == rule and (not activity or activity in option.activities):
            return in_words(option.advice, [one.at for one in places], places[0].words)
    return None


def options_of_rule(main: MainProcess, rule: str) -> Iterator[tuple[str, Frame]]:
    """Yield the advice about each option that another rule names, and its first place.

    Args:
        main: the process.
        rule: the kind of the rule.
    """
    for option, places in _options(main):
        if option.rule == rule:
            at = [one.at for one in places]
            yield in_words(option.advice, at, places[0].words), at[0]


def lines_of_option(main: MainProcess, name: str) -> frozenset[Frame]:
    """Return the lines of a program to which an option of the table belongs.

    Args:
        main: the process.
        name: the option's name in the table.
    """
    processes = (main.process, *main.workers, *main.children)
    return frozenset(
        line
        for process in processes
        for one in process.costly_options
        if one.name == name
        for line in one.lines
    )


def in_words(advice: str, places: Sequence[Frame], words: Mapping[str, str]) -> str:
    """Return the advice of the table with an option, its places, and parts of the source."""
    options = [f"`{one.short_text}` at {one.short_place}" for one in places]
    names = list(dict.fromkeys(one.short_place for one in places))
    return advice.format(option=listed(options), at=listed(names), **words)


def _options(main: MainProcess) -> Iterator[tuple[Option, Sequence[CostlyOption]]]:
    """Yield the options of a program's processes, in the order of the table.

    Options whose advice names other parts of the source are different options.
    """
    by_name: defaultdict[str, dict[Frame, CostlyOption]] = defaultdict(dict)
    for process in (main.process, *main.workers, *main.children):
        for one in process.costly_options:
            lines = by_name[one.name][one.at].lines if one.at in by_name[one.name] else ()
            both = tuple(dict.fromkeys((*lines, *one.lines)))
            by_name[one.name][one.at] = msgspec.structs.replace(one, lines=both)
    for option in costly_options():
        by_words: defaultdict[tuple[tuple[str, str], ...], list[CostlyOption]] = defaultdict(list)
        for one in by_name.get(option.name, {}).values():
            by_words[tuple(sorted(one.words.items()))].append(one)
        for places in by_words.values():
            yield option, sorted(places, key=lambda one: (one.at.file, one.at.line))


def _time(option: Option, places: Sequence[CostlyOption], main: MainProcess) -> OptionTime | None:
    words = places[0].words
    if option.columns:
        unused = _unused_columns(words["used"], main)
        if not unused:
            return None
        words = {**words, "unused": unused}
    wall_s = loading_s = long_s = short_s = 0.0
    repeated_s = dict.fromkeys(option.repeats, 0.0)
    lines = LineTimes()
    stacks: defaultdict[tuple[Frame, ...], float] = defaultdict(float)
    using = frozenset(line for one in places for line in one.lines)
    own = [(seen, seen.wall_s) for seen in main.process.stacks]
    others = [(seen, part_s) for _, seen, part_s in stacks_of_others(main)]
    for seen, part_s in (*own, *others):
        if not _fits(option, using, seen):
            continue
        if not any(BACKWARD.search(place_of(frame)) for frame in seen.frames):
            long_s += part_s if seen.state in _NATIVE else 0.0
            short_s += part_s if seen.state is State.PYTHON else 0.0
        is_native = option.cores or option.itself or option.native
        if is_native and seen.state not in _NATIVE:
            continue
        if option.waits and seen.state not in _WAITS:
            continue
        methods = {frame.function.rpartition(".")[2] for frame in seen.own_frames}
        for method in methods.intersection(repeated_s):
            repeated_s[method] += part_s
        wall_s += part_s
        is_loading = bool(main.workers) or doing_of(seen) is Doing.LOADING
        loading_s += part_s if is_loading else 0.0
        lines.add(msgspec.structs.replace(seen, wall_s=part_s))
        stacks[seen.frames] += part_s
    if not wall_s or not _is_shown(option, stacks):
        return None
    if option.repeats and repeated_s[option.repeats[0]] < _REPEATS * repeated_s[option.repeats[1]]:
        return None
    return OptionTime(
        option,
        _longest_first(places, stacks),
        words,
        wall_s,
        lines.slowest(),
        stacks,
        in_loading=2 * loading_s > wall_s,
        long_calls_percent=100 * long_s / max(long_s + short_s, wall_s / 1000),
    )


def _longest_first(
    places: Sequence[CostlyOption], stacks: Mapping[tuple[Frame, ...], float]
) -> list[Frame]:
    """Return the places of an option, the one whose lines took the most time first."""

    def seconds(place: CostlyOption) -> float:
        lines = frozenset(place.lines)
        return sum(wall_s for frames, wall_s in stacks.items() if not lines.isdisjoint(frames))

    return [one.at for one in sorted(places, key=seconds, reverse=True)]


def _unused_columns(used: str, main: MainProcess) -> str:
    """Return the large columns of a data set that a program does not use; empty if there are none.

    It is not known which data set a line reads, so all data sets that have the used columns must
    have such columns.

    Args:
        used: the used columns, as code: `'a', 'b'`.
        main: the process.
    """
    names = frozenset(_NAME.findall(used))
    processes = (main.process, *main.workers)
    facts = (one.libraries.get("datasets", {}).get("tables", ()) for one in processes)
    tables = [one["columns"] for tables in facts for one in tables]
    found = [_others(columns, names) for columns in tables if names and names <= columns.keys()]
    if not found or not all(found):
        return ""
    return listed([f"`{name}`" for name in found[-1]])


def _others(columns: Mapping[str, int], used: frozenset[str]) -> list[str]:
    """Return the names of columns without which a row would be much smaller, largest first."""
    others = sorted((name for name in columns if name not in used), key=lambda one: -columns[one])
    used_bytes = sum(columns[name] for name in used)
    if sum(columns[name] for name in others) < _TIMES_LARGER * used_bytes:
        return []
    return [name for name in others if columns[name] >= used_bytes][:_MOST_COLUMNS]


def _fits(option: Option, using: frozenset[Frame], seen: Seen) -> bool:
    """Return whether an option explains the time of a stack.

    Args:
        option: the option.
        using: the lines that use it; empty: all lines.
        seen: the stack.
    """
    if using and using.isdisjoint(seen.own_frames):
        return False
    if option.itself and seen.own_frames and is_library(seen.own_frames[0].file):
        return False
    return not (option.files or option.lines) or _is_in(option.name, seen.frames)


def _is_shown(option: Option, stacks: Mapping[tuple[Frame, ...], float]) -> bool:
    """Return whether functions on the stacks show that the option costs time, if it needs this."""
    pattern = _any(option.beside)
    if pattern is None:
        return True
    shown_s = sum(
        wall_s
        for frames, wall_s in stacks.items()
        if any(pattern.search(place_of(frame)) for frame in frames)
    )
    return shown_s >= _LEAST_BESIDE * sum(stacks.values())


@functools.lru_cache(maxsize=65536)
def _is_in(name: str, frames: tuple[Frame, ...]) -> bool:
    """Return whether the functions or the innermost line of a stack fit an option."""
    files, lines = _patterns()[name]
    places = [place_of(frame) for frame in frames if is_library(frame.file)]
    if any(map(IMPORTS.search, places)):
        return False
    text = next((frame.text for frame in frames if not is_library(frame.file)), "")
    return bool((lines and lines.search(text)) or (files and any(map(files.search, places))))


@functools.cache
def _patterns() -> dict[str, tuple[re.Pattern[str] | None, re.Pattern[str] | None]]:
    return {one.name: (_any(one.files), _any(one.lines)) for one in costly_options()}


def _any(patterns: Iterable[str]) -> re.Pattern[str] | None:
    joined = "|".join(f"(?:{one})" for one in patterns)
    return re.compile(joined) if joined else None
