"""The time of a program that went to computing lazy tables again in each iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from teho.explain.activities import every_stack
from teho.explain.call_sums import CallSum
from teho.model.in_source import RepeatedPlan
from teho.model.program import MainProcess
from teho.model.stack import Frame, Seen, is_library

__all__ = ["PlanTime", "plan_times"]


class PlanTime(NamedTuple):
    """Time of a call that computes the plan of a lazy table again in each iteration of a loop."""

    plan: RepeatedPlan
    wall_s: float
    """Time of the main thread in the call, or waiting for processes that were in it."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in the call, in s."""


def plan_times(main: MainProcess) -> list[PlanTime]:
    """Return the time of each of these calls, longest first.

    The time in functions of the program that the library called, such as for each row, does not
    count: keeping the table would not save it.
    """
    plans: dict[tuple[Frame, Frame], RepeatedPlan] = {}
    sums: dict[tuple[Frame, Frame], CallSum] = {}
    for plan, seen, wall_s in _in_calls(main):
        key = plan.call, plan.loop
        plans[key] = plan
        sums.setdefault(key, CallSum(main)).add(plan.call, seen, wall_s)
    figures = {key: one.figures() for key, one in sums.items()}
    found = [PlanTime(plans[key], one.wall_s, one.stacks) for key, one in figures.items()]
    return sorted(found, key=lambda one: -one.wall_s)


def _in_calls(main: MainProcess) -> Iterator[tuple[RepeatedPlan, Seen, float]]:
    """Yield the stacks in these calls, with the time for which they stand."""
    for process, seen, wall_s in every_stack(main):
        innermost = next((frame for frame in seen.frames if not is_library(frame.file)), None)
        for plan in process.repeated_plans:
            if innermost == plan.call and plan.has(seen):
                yield plan, seen, wall_s
