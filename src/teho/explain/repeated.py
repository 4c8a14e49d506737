"""The time of a program that went to work that a loop did again with the same inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from teho.explain.activities import stacks_of_others
from teho.explain.where import doing_of
from teho.model.program import Doing, MainProcess
from teho.model.watched import Frame, Repeated, Seen

__all__ = ["RepeatedTime", "repeated_times"]

_PERIODS = 3
"""A call that happens only once is seen beside other lines of its loop in at most two periods."""


class RepeatedTime(NamedTuple):
    """Time of calls that gave the same results in each iteration of a loop."""

    repeated: Repeated
    wall_s: float
    """Time of the main thread in the call, or waiting for processes that were in it."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in the call, in s."""
    in_loading: bool
    """Whether most of it was in loading data."""

    @property
    def call(self) -> Frame:
        """The line of the call."""
        return self.repeated.calls[-1]


def repeated_times(main: MainProcess) -> list[RepeatedTime]:
    """Return the time of each repeated call, longest first.

    Work that a loop computes again with the same result comes before the work around it, of which
    only the values of an inner loop are the same.
    """
    loading: defaultdict[tuple[Frame, Frame, bool], float] = defaultdict(float)
    sums: dict[tuple[Frame, Frame, bool], Repeated] = {}
    times: defaultdict[tuple[Frame, Frame, bool], dict[int, float]] = defaultdict(dict)
    stacks: defaultdict[tuple[Frame, Frame, bool], dict[tuple[Frame, ...], float]] = defaultdict(
        dict
    )
    for repeated, seen, wall_s in _in_calls(main):
        key = repeated.calls[-1], repeated.loop, repeated.is_same
        sums[key] = repeated
        times[key][id(seen)] = wall_s  # several stacks may lead to the same call
        stacks[key][seen.frames] = stacks[key].get(seen.frames, 0.0) + wall_s
        loading[key] += wall_s if main.workers or doing_of(seen) is Doing.LOADING else 0.0
    found = [
        RepeatedTime(
            sums[key],
            sum(each.values()),
            stacks[key],
            in_loading=2 * loading[key] > sum(each.values()),
        )
        for key, each in times.items()
    ]
    return sorted(found, key=lambda one: (not one.repeated.is_same, -one.wall_s))


def _in_calls(main: MainProcess) -> Iterator[tuple[Repeated, Seen, float]]:
    """Yield the stacks in repeated calls, with the time for which they stand."""
    own = [(main.process, seen, seen.wall_s) for seen in main.process.stacks]
    for process, seen, wall_s in (*own, *stacks_of_others(main)):
        for repeated in process.repeated:
            if repeated.periods >= _PERIODS and repeated.has(seen):
                yield repeated, seen, wall_s
