"""The time of a program that went to work that a loop did again with the same inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teho.explain.activities import every_stack
from teho.explain.call_sums import CallSum
from teho.model.in_source import Repeated
from teho.model.program import MainProcess
from teho.model.stack import Frame, Seen

__all__ = ["RepeatedTime", "repeated_times"]


class RepeatedTime(NamedTuple):
    """Time of calls that gave the same results in each iteration of a loop.

    All calls are in one function, and the same advice fits all of them.
    """

    repeated: Repeated
    """The call with the most time."""
    wall_s: float
    """Time of the main thread in the calls, or waiting for processes that were in them."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in the calls, in s."""
    lines: Sequence[tuple[Frame, float]]
    """The calls, each with its time in s, the longest first."""
    in_loading: bool
    """Whether most of it was in loading data."""


def repeated_times(main: MainProcess) -> list[RepeatedTime]:
    """Return the time of the repeated calls of each function, longest first.

    Work that a loop computes again with the same result comes before the work around it, of which
    only the values of an inner loop are the same.
    """
    sums: dict[tuple[object, ...], CallSum] = {}
    calls: defaultdict[tuple[object, ...], dict[Frame, Repeated]] = defaultdict(dict)
    for one, seen, wall_s in _in_calls(main):
        what = one.is_same, one.has_cache, one.is_changed
        key = one.call.file, one.call.function, one.loop, *what
        sums.setdefault(key, CallSum(main)).add(one.call, seen, wall_s)
        calls[key][one.call] = one
    figures = {key: one.figures() for key, one in sums.items()}
    found = [RepeatedTime(calls[key][one.lines[0][0]], *one) for key, one in figures.items()]
    return sorted(found, key=lambda one: (not one.repeated.is_same, -one.wall_s))


def _in_calls(main: MainProcess) -> Iterator[tuple[Repeated, Seen, float]]:
    """Yield the stacks in repeated calls, with the time for which they stand."""
    for process, seen, wall_s in every_stack(main):
        for repeated in process.repeated:
            if repeated.happens_again and repeated.has(seen):
                yield repeated, seen, wall_s
