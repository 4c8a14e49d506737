"""Messages between processes: whether they are small, and what the processes do for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from teho.explain.activities import ActivityTime, activity_of, activity_times
from teho.explain.program_context import ProgramContext
from teho.explain.where import is_for_next_task, place_of
from teho.model.program import MainProcess
from teho.model.stack import Frame, Seen, State, is_library
from teho.patterns import lazy_pattern

__all__ = [
    "OBJECTS_OF_RANKS",
    "OBJECTS_PASSED",
    "ObjectsMade",
    "SmallMessages",
    "exchanges_objects",
    "objects_made_around",
    "small_messages",
]

OBJECTS_PASSED = "objects_passed"
OBJECTS_OF_RANKS = "ranks_exchange_objects"
_FROM_LISTS = "arrays_from_lists"
"""Names in activities.toml."""

_STARTS = lazy_pattern(r"/multiprocess(ing)?/process\.py:(BaseProcess\.)?(run|_bootstrap)$")
_RUNS = frozenset((State.PYTHON, State.NATIVE, State.RUNNING))
_CONVERTS = lazy_pattern(r"\.(tolist|item)\(|\b(int|float|list|dict)\(")
_BEFORE = 12
"""Lines before an exchange that may make its objects, and after it that may read them."""


class SmallMessages(NamedTuple):
    """Many small messages between a program and its child processes."""

    function: Frame | None
    """The line of the child processes' own function that was seen most."""
    worked_s: float
    """Time in which the child processes executed the program's functions, and the libraries that
    these called."""
    bytes_per_s: float
    """Bytes that all processes read or wrote, while the program passed messages."""
    switches_per_s: float
    """Context switches of the node."""


def small_messages(
    context: ProgramContext, main: MainProcess, time: ActivityTime
) -> SmallMessages | None:
    """Return what child processes do for small messages; None if messages may be large.

    None also if the child processes have so much work that it would take long in the main process.

    Args:
        context: the run, as a rule reads it.
        main: the process that passes the messages.
        time: its time for passing objects.
    """
    node = context.node_of(main)
    if node is None or time.in_others or not main.children:
        return None
    passed = [context.total(node, f"job_{way}_calls_bytes") for way in ("read", "write")]
    switches = context.total(node, "context_switches")
    known = [one for one in passed if one is not None]
    if len(known) < len(passed) or switches is None:
        return None
    function, worked_s = _work_of(main)
    found = SmallMessages(
        function,
        worked_s,
        bytes_per_s=max(known) / time.wall_s,
        switches_per_s=switches / context.summary.elapsed_s,
    )
    is_small = context.are_small_messages(found.bytes_per_s, found.switches_per_s)
    return found if is_small and 2 * worked_s < time.wall_s else None


def _work_of(main: MainProcess) -> tuple[Frame | None, float]:
    worked_s = 0.0
    lines: dict[Frame, float] = {}
    for child in main.children:
        for seen in child.stacks:
            target = _target(seen)
            if target is None:
                continue
            lines[target] = lines.get(target, 0.0) + seen.wall_s
            is_own = not is_for_next_task(seen) and activity_of(seen) is None
            worked_s += seen.wall_s if is_own and seen.state in _RUNS else 0.0
    return max(lines, key=lambda one: lines[one], default=None), worked_s


def _target(seen: Seen) -> Frame | None:
    """Return the line in the function that a child process executes; None if there is none."""
    inside: list[Frame] = []
    for frame in seen.own_frames:
        if _STARTS.search(place_of(frame)):
            return inside[-1] if inside else None
        if not is_library(frame.file):
            inside.append(frame)
    return None


class ObjectsMade(NamedTuple):
    """The conversion of numbers to Python objects before these are exchanged, and back after it."""

    made: tuple[tuple[Frame, float], ...]
    """Lines that make the objects, with their times in s, longest first."""
    read: tuple[tuple[Frame, float], ...]
    """Lines that make arrays of the received objects."""
    stacks: frozenset[tuple[Frame, ...]]

    @property
    def wall_s(self) -> float:
        """Time of both, in s."""
        return sum(wall_s for _, wall_s in (*self.made, *self.read))

    def in_words(self, run_s: float) -> str:
        """Return a sentence on each of the two conversions, for a run of some seconds."""
        parts = ("Making these objects", self.made), ("Making arrays from these objects", self.read)
        return "".join(
            f" {what} at {lines[0][0].short_place} took another "
            f"{100 * sum(wall_s for _, wall_s in lines) / run_s:.0f} %."
            for what, lines in parts
            if lines
        )


def exchanges_objects(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether the exchange of Python objects between ranks costs enough to report it."""
    found = (one for one in activity_times(main) if one.activity.name == OBJECTS_OF_RANKS)
    time = next(found, None)
    if time is None:
        return False
    around = objects_made_around(main, time)
    return context.is_loss(time.wall_s + (around.wall_s if around else 0.0), main)


def objects_made_around(main: MainProcess, time: ActivityTime) -> ObjectsMade | None:
    """Return the time of the lines that convert numbers around an exchange; None if none.

    The lines are in the same function as the exchange, not far above or below it. The call of the
    exchange may also convert numbers in its arguments.
    """
    exchanges = {(frame.file, frame.line) for frame, _ in time.lines}
    functions = {
        (frame.file, frame.function): frame.line
        for frames in time.stacks
        for frame in frames
        if (frame.file, frame.line) in exchanges
    }
    made: dict[Frame, float] = {}
    read: dict[Frame, float] = {}
    stacks: set[tuple[Frame, ...]] = set()
    for seen in main.process.stacks:
        if seen.frames in time.stacks:
            continue
        for frame, text in _with_texts(seen):
            call = functions.get((frame.file, frame.function))
            if call is None:
                continue
            is_made = call - _BEFORE <= frame.line <= call and _CONVERTS.search(text)
            if is_made:
                made[frame] = made.get(frame, 0.0) + seen.wall_s
            elif call < frame.line <= call + _BEFORE and _is_from_list(seen):
                read[frame] = read.get(frame, 0.0) + seen.wall_s
            else:
                break
            stacks.add(seen.frames)
            break
    if not stacks:
        return None
    lines = [sorted(one.items(), key=lambda pair: -pair[1]) for one in (made, read)]
    return ObjectsMade(tuple(lines[0]), tuple(lines[1]), frozenset(stacks))


def _is_from_list(seen: Seen) -> bool:
    """Return whether a stack makes an array from a list, whatever its thread waits for."""
    activity = activity_of(msgspec.structs.replace(seen, state=State.PYTHON))
    return activity is not None and activity.name == _FROM_LISTS


def _with_texts(seen: Seen) -> Iterator[tuple[Frame, str]]:
    """Yield the program's lines from the innermost one, each with the innermost text.

    A list comprehension may have a frame of its own: its text belongs to the line around it.
    """
    text = ""
    for frame in seen.own_frames:
        if is_library(frame.file):
            continue
        text = text or frame.text
        yield frame, text
