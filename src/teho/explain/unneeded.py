"""The time of a program that went to results that it uses seldom, never, or only in part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from teho.explain.activities import every_stack
from teho.explain.call_sums import CallSum, Figures
from teho.explain.repeated import repeated_times
from teho.model.in_source import Need, Unneeded
from teho.model.program import MainProcess
from teho.model.stack import Frame

__all__ = ["UnneededTime", "saved_part", "unneeded_times"]

_REGAIN_NEVER = (0.9, 1.0)
_REGAIN_LAST = (0.5, 0.95)
"""The number of iterations is not known: with two of them, half of the time is saved."""
_LEAST_UNSURE = 0.3
"""Part of the time that is saved at least if the run may have had other settings."""
_Key = tuple[Need, Frame, tuple[object, ...]]


class UnneededTime(NamedTuple):
    """Time of the expressions whose results one place of the program uses."""

    unneeded: Unneeded
    """The expression with the most time, with the lines that are moved for all of them."""
    wall_s: float
    """Time of the main thread in them, or waiting for processes that were in them."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in them, in s."""
    lines: Sequence[tuple[Frame, float]]
    """The expressions, each with its time in s, the longest first."""
    in_loading: bool
    """Whether most of it was in loading data."""


def unneeded_times(main: MainProcess) -> list[UnneededTime]:
    """Return these times, longest first.

    The time in a call that gives the same result again in each iteration does not count, if the
    expression is inside this call: then the call is the better place to save time.
    """
    again = [one for one in repeated_times(main) if one.repeated.is_same]
    sums: dict[_Key, CallSum] = {}
    calls: defaultdict[_Key, dict[Frame, Unneeded]] = defaultdict(dict)
    for process, seen, wall_s in every_stack(main):
        for one in process.unneeded:
            if not _is_sure(one) or not one.has(seen):
                continue
            if any(
                seen.frames in time.stacks and len(time.repeated.calls) <= len(one.calls)
                for time in again
            ):
                continue
            key = one.need, one.loop, one.at or one.moved[-1:]
            sums.setdefault(key, CallSum(main)).add(one.call, seen, wall_s)
            calls[key][one.call] = one
    figures = {key: one.figures() for key, one in sums.items()}
    found = [UnneededTime(_together(calls[key], one), *one) for key, one in figures.items()]
    return sorted(found, key=lambda one: -one.wall_s)


def saved_part(one: Unneeded) -> tuple[float, float]:
    """Return the part of the time of an unneeded result that is saved, at least and at most."""
    if one.need is Need.NEVER:
        return _REGAIN_NEVER
    if one.need is Need.LAST or one.share is None:
        return _REGAIN_LAST
    if not one.is_sure:
        return _LEAST_UNSURE, 1 - one.share
    # The condition may be true in the first iteration. The call happened in each period, at least.
    return 1 - max(one.share, 1 / (one.periods - 1)), 1 - one.share


def _together(calls: Mapping[Frame, Unneeded], figures: Figures) -> Unneeded:
    """Return the expression with the most time, with the lines that are moved for all of them."""
    moved = sorted({line for one in calls.values() for line in one.moved})
    return msgspec.structs.replace(calls[figures.lines[0][0]], moved=tuple(moved))


def _is_sure(one: Unneeded) -> bool:
    return one.need in {Need.NEVER, Need.PART} or one.happens_again
