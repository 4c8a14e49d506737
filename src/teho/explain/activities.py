"""Activities besides a program's main work, recognised by the functions on its stacks."""

from __future__ import annotations

import enum
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple, Union

import msgspec

from teho.config.toml import read_toml
from teho.explain.children import most_at_once, only_answers, worked_s
from teho.explain.where import IMPORTS, LineTimes, doing_in, doing_of, place_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen, State, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

__all__ = [
    "ANOMALY_MODE",
    "Activity",
    "ActivityKind",
    "ActivityTime",
    "activities",
    "activity_of",
    "activity_times",
    "detects_anomalies",
    "early_stacks",
    "every_stack",
    "loading_activity",
    "main_activity",
    "stacks_of_others",
]

ANOMALY_MODE = "anomaly_mode"
_FOR_COMMANDS = ("sleeping", "programs_started")
"""Activities of a program that starts commands and waits until they have ended."""
_TRACEBACKS = "warnings_formatted"
_FILE = Path(__file__).with_name("activities.toml")
_AWAITED = frozenset((Doing.LOADING, Doing.PROCESS, Doing.WAITING, Doing.SLEEPING, Doing.LOCK))
"""Activities of a main thread that may wait for its workers or children."""
_PACKAGES = lazy_pattern(r"/(site|dist)-packages/")
_BOOTSTRAP = lazy_pattern(r"/multiprocessing/process\.py:(BaseProcess\.)?_bootstrap$")
"""Function at the bottom of a child process; a forked one has its parent's stack below it."""
_MANY_CHILDREN = 8
_MORE_AT_START = 1.5
"""Times the share of the rest of the run."""
_PASSIVE = frozenset((State.PROCESS, State.LOCK, State.SLEEPING, State.WAITING))


class ActivityKind(str, enum.Enum):
    """Whether an activity may belong to the main work."""

    OVERHEAD = "overhead"
    """A healthy program rarely does this for long."""
    WORK = "work"
    """It may be a part of the main work, such as reading data."""
    WAITING = "waiting"
    """The program may wait for processes that do the main work."""


class Activity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An activity of `activities.toml`."""

    name: str
    what: str
    """Completes the sentence `… took 40 % of the time`."""
    kind: ActivityKind
    advice: str
    regain: tuple[float, float]
    """Least and most part of its time that the advice usually saves."""
    files: tuple[str, ...] = ()
    """Patterns for `FILE:FUNCTION` of library functions."""
    calls: tuple[str, ...] = ()
    """Patterns for the text of the innermost Python line."""
    lines: tuple[str, ...] = ()
    """Patterns for the text of the program's innermost line, which may run a library function."""
    also: tuple[str, ...] = ()
    """Patterns for `FILE:FUNCTION`: for each one, a function on the stack must match."""
    beside: tuple[str, ...] = ()
    """Patterns for the innermost Python lines of the program: one must match somewhere."""
    unless: tuple[str, ...] = ()
    """Patterns for the innermost Python line and library functions: none may match."""
    faster_way: bool = False
    """Whether the advice names a faster way to the same result, for the kind `work`."""
    anywhere: bool = False
    """Whether library functions that called the program count too."""
    purpose: Literal["perhaps", "without_steps", "never"] = "perhaps"
    """Whether it may be what a program is for, for the kind `work`."""
    may_be_purpose: bool = False
    """Whether it may be what a program without steps is for, for other kinds."""
    in_threads: Literal["too", "only", "never"] = "too"
    """Whether it counts while other threads compute and the main thread waits for them."""
    least_percent: Union[float, None] = None
    """It counts from this share of the time in %; None: from the share for all activities."""
    repeated: bool = False
    """Whether it is normal before the first step."""
    outside_loaders: bool = False
    """Whether it does not count inside a data loader, which has rules of its own."""
    only_in_children: bool = False
    """Whether it counts only in many child processes."""
    waits: bool = False
    """Whether waiting for another process, for a lock or for a time belongs to it."""
    waits_unless: tuple[str, ...] = ()
    """Patterns for library functions, and for the program's innermost line: if one matches, waiting
    does not belong to it."""
    ends_workers: tuple[str, ...] = ()
    """Patterns for library functions that end worker processes: if one matches, only the time
    counts in which the child processes have no work."""


class ActivityTime(NamedTuple):
    """Time of a program that went to an activity."""

    activity: Activity
    wall_s: float
    """Time of the main thread, in the activity or waiting for processes that were in it."""
    lines: tuple[tuple[Frame, float], ...]
    """The program's lines that led to it, with the wall time of each in s, longest first."""
    in_others: bool
    """Whether most of it was in the workers of a data loader or in other child processes."""
    in_loading: bool
    """Whether most of it was in loading data."""
    loading_s: float
    """The part of it that was in loading data."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Wall time of each of its stacks, in s."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    activity: tuple[Activity, ...]


class _Patterns(NamedTuple):
    activity: Activity
    files: re.Pattern[str] | None
    calls: re.Pattern[str] | None
    lines: re.Pattern[str] | None
    also: tuple[re.Pattern[str], ...]
    beside: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    waits_unless: re.Pattern[str] | None

    def may_wait(self, called: Sequence[str], own: str) -> bool:
        """Return whether a thread that waits is in this activity, if its stack fits."""
        excluded = self.waits_unless
        is_excluded = excluded is not None and any(map(excluded.search, (own, *called)))
        return self.activity.waits and not is_excluded

    def fits(self, called: Sequence[str], callers: Sequence[str], text: str) -> bool:
        """Return whether the rest of a stack fits too, if a function or its line matches."""
        if self.unless and any(map(self.unless.search, (text, *called))):
            return False
        places = (*called, *callers)
        return all(any(map(pattern.search, places)) for pattern in self.also)


@functools.cache
def activities() -> tuple[Activity, ...]:
    """Return all known activities, special ones before general ones."""
    return msgspec.convert(read_toml(_FILE), _File).activity


@functools.cache
def _patterns() -> tuple[_Patterns, ...]:
    return tuple(
        _Patterns(
            one,
            _any(one.files),
            _any(one.calls),
            _any(one.lines),
            tuple(map(re.compile, one.also)),
            _any(one.beside),
            _any(one.unless),
            _any(one.waits_unless),
        )
        for one in activities()
    )


def _any(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{one})" for one in patterns)) if patterns else None


def activity_of(
    seen: Seen, *, in_loaders: bool = False, shown: frozenset[str] = frozenset()
) -> Activity | None:
    """Return the activity of a stack; None if it is in no known one.

    The functions that the innermost line of the program called count, the text of this line, and
    the text of the innermost Python line: a function in C has no frame.

    Args:
        seen: the stack.
        in_loaders: whether activities count that are left out inside a data loader.
        shown: names of the activities that count only beside other lines, if there are such lines.
    """
    frames = tuple(takewhile(lambda frame: not _BOOTSTRAP.search(place_of(frame)), seen.frames))
    if not frames:
        return None
    places = tuple(map(place_of, frames))
    called = next(
        (place for place, frame in enumerate(frames) if not is_library(frame.file)), len(frames)
    )
    # In other packages, the line says nothing about the program.
    text = "" if _PACKAGES.search(frames[0].file) else frames[0].text
    own = frames[called].text if called < len(frames) else ""
    found = _activity(places[:called], places[called:], text, own, seen.state, shown)
    if found is None or (seen.state in _PASSIVE and not found.may_wait(places[:called], own)):
        return None
    activity = found.activity
    is_left_out = activity.outside_loaders and not in_loaders and doing_of(seen) is Doing.LOADING
    return None if is_left_out else activity


@functools.lru_cache(maxsize=4096)
def _activity(
    called: tuple[str, ...],
    callers: tuple[str, ...],
    text: str,
    own: str,
    state: State,
    shown: frozenset[str],
) -> _Patterns | None:
    is_import = any(map(IMPORTS.search, called))
    inside = _of_text(text).union(_of_own_line(own), *map(_of_place, called))
    outside = frozenset[int]().union(*map(_of_place, callers))
    for number, one in enumerate(_patterns()):
        activity = one.activity
        if number not in inside and not (activity.anywhere and number in outside):
            continue
        if not one.fits(called, callers, text):
            continue
        if activity.in_threads == ("never" if state is State.THREADS else "only"):
            continue
        if is_import and not activity.only_in_children:
            continue
        if activity.beside and activity.name not in shown:
            continue
        return one
    return None


@functools.lru_cache(maxsize=65536)
def _of_place(place: str) -> frozenset[int]:
    """Return the numbers of the activities whose patterns match a function.

    Many stacks have the same functions: each function is compared with all patterns only once.
    """
    return frozenset(
        number for number, one in enumerate(_patterns()) if one.files and one.files.search(place)
    )


@functools.lru_cache(maxsize=4096)
def _of_text(text: str) -> frozenset[int]:
    """Return the numbers of the activities whose patterns match a line."""
    return frozenset(
        number for number, one in enumerate(_patterns()) if one.calls and one.calls.search(text)
    )


@functools.lru_cache(maxsize=4096)
def _of_own_line(text: str) -> frozenset[int]:
    """Return the numbers of the activities whose patterns match a line of the program."""
    return frozenset(
        number for number, one in enumerate(_patterns()) if one.lines and one.lines.search(text)
    )


def _shown(process: WatchedProcess) -> frozenset[str]:
    """Return the names of the activities of which the program has the lines beside them."""
    texts = {seen.frames[0].text for seen in process.stacks if seen.frames}
    return frozenset(
        one.activity.name
        for one in _patterns()
        if one.beside and any(map(one.beside.search, texts))
    )


def activity_times(main: MainProcess, *, with_set_up: bool = True) -> list[ActivityTime]:
    """Return the time that a program spent in known activities, longest first.

    If the main thread waits for its data or for child processes, this time is divided by what the
    loader's workers or the children did. Activities that are normal at the start, and take more of
    it than of the rest, count only after the first step; without known steps, after the first
    quarter of the run.

    Args:
        main: the process.
        with_set_up: whether other activities count before the first step.
    """
    found = {one.name: _Sum(one) for one in activities()}
    awaited_s = 0.0
    shown = _shown(main.process)
    ending: list[tuple[Activity, Seen]] = []
    for seen in main.process.stacks:
        activity = activity_of(seen, shown=shown)
        # Without child processes, the workers of the pool are threads, which share all objects.
        if activity is not None and activity.in_threads == "only" and not main.children:
            activity = None
        if activity is not None and _ends_workers(activity, seen):
            ending.append((activity, seen))
        elif activity is not None and not activity.only_in_children:
            found[activity.name].add(seen, 1.0)
        if activity is None and doing_in(main.process, seen) in _AWAITED:
            awaited_s += seen.wall_s
    ending_s = sum(seen.wall_s for _, seen in ending)
    # While the program ends its workers, it may also wait until they have done their work.
    idle_s = min(ending_s, max(0.0, ending_s + awaited_s - worked_s(main)))
    awaited_s += ending_s - idle_s
    idle = idle_s / ending_s if ending_s > 0 else 0.0
    for activity, seen in ending:
        found[activity.name].add(seen, idle)
    early: dict[str, list[Seen]] = {}
    start = early_stacks(main.process)
    start_s = sum(seen.wall_s for seen in start)
    rest_s = sum(seen.wall_s for seen in main.process.stacks) - start_s
    for seen in start:
        activity = activity_of(seen, shown=shown)
        if activity is not None and (activity.repeated or not with_set_up):
            early.setdefault(activity.name, []).append(seen)
    for name, stacks in early.items():
        # An activity that takes a larger share of the start than of the rest belongs to the start.
        early_s = sum(seen.wall_s for seen in stacks)
        later_s = found[name].wall_s - early_s
        if rest_s <= 0 or early_s / start_s > _MORE_AT_START * later_s / rest_s:
            for seen in stacks:
                found[name].add(seen, -idle if _ends_workers(found[name].activity, seen) else -1.0)
    has_many = len(main.children) >= _MANY_CHILDREN
    # A program that sleeps until its commands have ended waits for what they do.
    slept_s = sum(found[name].wall_s for name in _FOR_COMMANDS)
    slept_s = slept_s if has_many and not main.workers else 0.0
    at_once = most_at_once(main.children)
    for _, seen, wall_s in stacks_of_others(main, slept_s):
        activity = activity_of(seen)
        if activity is not None and activity.only_in_children:
            weight = min(wall_s / seen.wall_s, 1 / at_once)
            found[activity.name].add(seen, weight, is_elsewhere=True)
    for _, seen, wall_s in stacks_of_others(main, awaited_s):
        activity = activity_of(seen)
        if activity is not None and (has_many or not activity.only_in_children):
            weight = wall_s / seen.wall_s
            found[activity.name].add(seen, weight, is_elsewhere=True, is_loading=bool(main.workers))
    if detects_anomalies(main):
        # It formats the Python stack of each operation.
        found[_TRACEBACKS].activity = found[ANOMALY_MODE].activity
    times = [one.time() for one in found.values() if one.wall_s > 0]
    return sorted(times, key=lambda one: -one.wall_s)


def _ends_workers(activity: Activity, seen: Seen) -> bool:
    """Return whether a stack ends worker processes, which may still have work."""
    if not activity.ends_workers:
        return False
    patterns = map(re.compile, activity.ends_workers)
    called = takewhile(lambda frame: is_library(frame.file), seen.frames)
    places = tuple(map(place_of, called))
    return any(any(map(pattern.search, places)) for pattern in patterns)


def stacks_of_others(
    main: MainProcess, awaited_s: float | None = None
) -> Iterator[tuple[WatchedProcess, Seen, float]]:
    """Yield the stacks of the processes for which a main thread waits.

    These are the workers of its data loaders, or else its child processes. The third item is the
    part of the main thread's waiting time for which a stack stands, in s.

    Args:
        main: the process.
        awaited_s: time for which it waited; None: all time in which it may have waited for them.
    """
    if awaited_s is None:
        awaited_s = sum(
            seen.wall_s for seen in main.process.stacks if doing_in(main.process, seen) in _AWAITED
        )
    others = [
        (one, seen)
        for one in main.workers or main.children
        for seen in _active(one)
        if seen.wall_s > 0 and not only_answers(seen)
    ]
    others_s = sum(seen.wall_s for _, seen in others)
    for process, seen in others:
        yield process, seen, min(1.0, awaited_s / others_s) * seen.wall_s


def every_stack(main: MainProcess) -> Iterator[tuple[WatchedProcess, Seen, float]]:
    """Yield the stacks of a process, and of the processes for which it waits.

    The third item is the time of the main thread for which a stack stands, in s.
    """
    for seen in main.process.stacks:
        yield main.process, seen, seen.wall_s
    yield from stacks_of_others(main)


def detects_anomalies(main: MainProcess) -> bool:
    """Return whether PyTorch's anomaly detection was on in a process."""
    return bool(main.process.libraries.get("torch", {}).get("anomaly"))


class _Sum:
    """The time of one activity."""

    def __init__(self, activity: Activity) -> None:
        self.activity = activity
        self.wall_s = 0.0
        self._elsewhere_s = 0.0
        self._loading_s = 0.0
        self._lines = LineTimes()
        self._stacks: defaultdict[tuple[Frame, ...], float] = defaultdict(float)

    def add(
        self, seen: Seen, weight: float, *, is_elsewhere: bool = False, is_loading: bool = False
    ) -> None:
        wall_s = weight * seen.wall_s
        self.wall_s += wall_s
        self._elsewhere_s += wall_s if is_elsewhere else 0.0
        self._loading_s += wall_s if is_loading or doing_of(seen) is Doing.LOADING else 0.0
        self._lines.add(msgspec.structs.replace(seen, wall_s=wall_s))
        self._stacks[seen.frames] += wall_s

    def time(self) -> ActivityTime:
        return ActivityTime(
            self.activity,
            self.wall_s,
            self._lines.slowest(),
            in_others=2 * self._elsewhere_s > self.wall_s,
            in_loading=2 * self._loading_s > self.wall_s,
            loading_s=self._loading_s,
            stacks=self._stacks,
        )


def early_stacks(process: WatchedProcess) -> Sequence[Seen]:
    """Return the stacks from before the first step, or from the first quarter of the run."""
    if process.progress:
        return process.set_up
    first = process.parts[: len(process.parts) // 4]
    return [seen for part in first for seen in part]


def loading_activity(main: MainProcess) -> tuple[ActivityTime, float] | None:
    """Return the known activity that took most of the loading of data, and its share of it.

    See `main_activity`.

    Args:
        main: the process; if its loader has workers, their time counts.
    """
    stacks = [
        seen
        for process in main.workers or (main.process,)
        for seen in process.stacks
        if seen.state not in _PASSIVE and (main.workers or doing_of(seen) is Doing.LOADING)
    ]
    return main_activity(stacks)


def main_activity(stacks: Sequence[Seen]) -> tuple[ActivityTime, float] | None:
    """Return the known activity with the most time of some stacks, and its share of their time.

    The share is from 0 to 1. None: no known activity was seen, or for no time.
    """
    found: dict[str, _Sum] = {}
    for seen in stacks:
        activity = activity_of(seen, in_loaders=True)
        if activity is not None:
            found.setdefault(activity.name, _Sum(activity)).add(seen, 1.0)
    whole_s = sum(seen.wall_s for seen in stacks)
    if not found or whole_s <= 0:
        return None
    longest = max(found.values(), key=lambda one: one.wall_s)
    return longest.time(), longest.wall_s / whole_s


def _active(process: WatchedProcess) -> Iterator[Seen]:
    """Yield the stacks of a process in which it does not wait for work."""
    for seen in process.stacks:
        if seen.state not in _PASSIVE or activity_of(seen) is not None:
            yield seen
