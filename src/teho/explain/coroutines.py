"""The time of connections that a loop opens again, and of requests that it awaits in turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Union

from teho.explain.activities import every_stack
from teho.explain.where import place_of
from teho.model.in_source import InTurn, ReopenedConnection
from teho.model.program import MainProcess
from teho.model.stack import Frame, Seen, State

__all__ = ["CallTime", "in_turn_times", "is_one_of_several", "lost_in_turn_s", "reopened_times"]

_InLoop = Union[ReopenedConnection, InTurn]
_TASK, _SEVERAL, _FIRST = "<task>:", "one of several", "only, others wait for a lock"
_ALONE = (f"{_TASK}only", _TASK + _FIRST)
"""The mark between the coroutines of a task and what waits for the task."""
_LEAST_TOGETHER = 0.2
"""If other tasks wait for less than this part of the time, the requests are in turn."""
_COMPUTES = frozenset((State.PYTHON, State.NATIVE, State.THREADS, State.CORE))


class CallTime(NamedTuple):
    """Time of a call in a loop."""

    in_loop: _InLoop
    wall_s: float
    """Time of the main thread in the call, or waiting for processes that were in it."""
    together_s: float
    """The part of it in which other tasks waited for something outside of the program too."""
    locked_s: float
    """The part of it in which other tasks waited for a lock, and no task for something outside."""
    alone_s: float
    """The part of it in which only one task waited for something outside of the program."""
    beside_s: float
    """Time in which the loop computed, outside of the call."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in the call, in s."""


def is_one_of_several(frames: Sequence[Frame]) -> bool:
    """Return whether a stack is that of one of several tasks that waited at the same time."""
    return _TASK + _SEVERAL in map(place_of, frames)


def _is_alone(frames: Sequence[Frame]) -> bool:
    return any(place_of(frame) in _ALONE for frame in frames)


def reopened_times(main: MainProcess) -> list[CallTime]:
    """Return the time of each call that opens a connection again, longest first."""
    return _times((process.reopened, seen, wall_s) for process, seen, wall_s in every_stack(main))


def in_turn_times(main: MainProcess) -> list[CallTime]:
    """Return the time of each request that a loop waits for in turn, longest first."""
    return _times((main.process.in_turn, seen, seen.wall_s) for seen in main.process.stacks)


def lost_in_turn_s(time: CallTime) -> float:
    """Return the time that shows that requests wait for each other, in s."""
    turn = time.in_loop
    if isinstance(turn, InTurn) and turn.block is not None:
        return time.alone_s
    if isinstance(turn, InTurn) and turn.lock is None:
        is_alone = time.together_s < _LEAST_TOGETHER * time.wall_s
        return time.wall_s if is_alone else time.beside_s
    return max(time.beside_s, time.locked_s)


def _times(all_seen: Iterable[tuple[Sequence[_InLoop], Seen, float]]) -> list[CallTime]:
    """Return the time of each call in a loop, from all stacks of the processes with these calls."""
    found: dict[tuple[Frame, Frame], _Sum] = {}
    for calls, seen, wall_s in all_seen:
        for one in calls:
            # Other tasks that wait for the lock at the same time show that it happens again, and so
            # does the number of items of the loop.
            is_again = isinstance(one, InTurn) and (one.lock is not None or one.is_many)
            if is_again or one.happens_again:
                found.setdefault((one.call, one.loop), _Sum(one)).add(one, seen, wall_s)
    return sorted((one.time() for one in found.values()), key=lambda one: -one.wall_s)


class _Sum:
    """The stacks of one call. Several stacks may lead to it."""

    def __init__(self, in_loop: _InLoop) -> None:
        self._in_loop = in_loop
        self._inside: dict[int, tuple[Seen, float]] = {}
        self._beside_s: dict[int, float] = {}

    def add(self, one: _InLoop, seen: Seen, wall_s: float) -> None:
        if one.has(seen):
            self._inside[id(seen)] = seen, wall_s
        elif one.is_beside(seen) and seen.state in _COMPUTES:
            self._beside_s[id(seen)] = wall_s

    def time(self) -> CallTime:
        stacks: defaultdict[tuple[Frame, ...], float] = defaultdict(float)
        for seen, wall_s in self._inside.values():
            stacks[seen.frames] += wall_s
        return CallTime(
            self._in_loop,
            sum(stacks.values()),
            sum(s for frames, s in stacks.items() if is_one_of_several(frames)),
            sum(s for frames, s in stacks.items() if _TASK + _FIRST in map(place_of, frames)),
            sum(s for frames, s in stacks.items() if _is_alone(frames)),
            sum(s for number, s in self._beside_s.items() if number not in self._inside),
            stacks,
        )
