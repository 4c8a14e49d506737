"""The time of expressions that go through a whole collection, although a part would be enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from teho.explain.activities import every_stack
from teho.explain.call_sums import CallSum
from teho.explain.shared_thresholds import chosen
from teho.model.in_source import Whole, WholeUse
from teho.model.program import MainProcess
from teho.model.stack import Frame, State
from teho.model.watched import WatchedProcess

__all__ = ["LONG_SORTS_PART", "TIMES_LONGER", "WholeTime", "whole_times"]

TIMES_LONGER = chosen(
    3.0,
    "times",
    "a search in a list of a few elements takes about as long as another line of the loop: if it "
    "takes this many times as long as all other lines together, the list is long",
)
LONG_SORTS_PART = chosen(
    0.5,
    "of the time",
    "calls of more than 50 µs sort about 1,000 elements or more: if most of the time is in such "
    "calls, the elements that are used are few",
)
_FEW = 100
"""Number of elements that are few among 1,000."""
_Key = tuple[WholeUse, str, str, str, "tuple[Frame, ...]"]


class WholeTime(NamedTuple):
    """Time of the expressions of a function that go through one collection."""

    whole: Whole
    """The expression with the most time."""
    wall_s: float
    """Time of the main thread in them, or waiting for processes that were in them."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in them, in s."""
    lines: Sequence[tuple[Frame, float]]
    """The expressions, each with its time in s, the longest first."""
    in_loading: bool
    """Whether most of it was in loading data."""
    beside_s: float
    """Time of the other lines of the loop, without longer calls."""
    long_calls_part: float
    """Part of the time in which native code ran in longer calls."""
    as_often_s: float | None = None
    """Time of statements that the loop executes as often; None: it has too few of them."""

    def is_lost(
        self,
        times_longer: float = TIMES_LONGER.value,
        long_sorts_part: float = LONG_SORTS_PART.value,
    ) -> bool:
        """Return whether the times show that the collection is much larger than the part.

        Args:
            times_longer: the limit for searches.
            long_sorts_part: the limit for sorts.
        """
        whole = self.whole
        if whole.use is WholeUse.SAVED:
            return whole.happens_again
        if whole.use is WholeUse.SORTED:
            is_long = self.long_calls_part >= long_sorts_part and (whole.count or 0) <= _FEW
            return whole.size is not None or is_long
        is_longer = self.as_often_s is not None and self.wall_s >= times_longer * self.as_often_s
        return is_longer or self.wall_s >= times_longer * self.beside_s


def whole_times(main: MainProcess) -> list[WholeTime]:
    """Return the time of each collection that is used as a whole, longest first."""
    sums: dict[_Key, CallSum] = {}
    calls: defaultdict[_Key, dict[Frame, Whole]] = defaultdict(dict)
    long_s: defaultdict[_Key, float] = defaultdict(float)
    for process, seen, wall_s in every_stack(main):
        for one in process.wholes:
            if one.has(seen):
                key = one.use, one.name, one.call.file, one.call.function, one.made
                sums.setdefault(key, CallSum(main)).add(one.call, seen, wall_s)
                calls[key][one.call] = one
                long_s[key] += wall_s if seen.state is State.NATIVE else 0.0
    found: list[WholeTime] = []
    for key, total in sums.items():
        figures = total.figures()
        whole = calls[key][figures.lines[0][0]]
        periods = max(each.periods for each in calls[key].values())
        found.append(
            WholeTime(
                msgspec.structs.replace(whole, periods=periods),
                *figures,
                _beside_s(main, whole),
                long_s[key] / max(figures.wall_s, 1e-9),
                _as_often_s(main, whole) if whole.as_often else None,
            )
        )
    return sorted(found, key=lambda one: -one.wall_s)


def _beside_s(main: MainProcess, whole: Whole) -> float:
    """Return the time of the lines of a loop, and of the functions between it and the expression.

    Other expressions of this kind do not count, such as a second search in the same list.
    """
    others = {one.call for process in _processes(main) for one in process.wholes}
    inner = {(one.file, one.function) for one in _after(whole)}
    return sum(
        wall_s
        for _, seen, wall_s in every_stack(main)
        if seen.own_frames
        and seen.state is not State.NATIVE
        and (place := seen.own_frames[0]) not in others
        and ((place.file, place.function) in inner or _is_in_loop(place, whole))
    )


def _as_often_s(main: MainProcess, whole: Whole) -> float:
    """Return the time of the statements that a loop executes as often as an expression."""
    call = whole.call
    return sum(
        wall_s
        for _, seen, wall_s in every_stack(main)
        if any(
            (one.file, one.function) == (call.file, call.function) and one.line in whole.as_often
            for one in seen.own_frames
        )
    )


def _processes(main: MainProcess) -> tuple[WatchedProcess, ...]:
    return (main.process, *main.workers, *main.children)


def _after(whole: Whole) -> Sequence[Frame]:
    """Return the functions on the stack inside the function that has the loop."""
    loop = whole.loop
    for place, one in enumerate(whole.calls):
        if (one.file, one.function) == (loop.file, loop.function):
            return [each for each in whole.calls[place + 1 :] if each.function != loop.function]
    return ()


def _is_in_loop(frame: Frame, whole: Whole) -> bool:
    loop = whole.loop
    is_function = (frame.file, frame.function) == (loop.file, loop.function)
    return is_function and loop.line <= frame.line <= whole.last
