"""The time of a program that went to computing lazy tables again in each iteration of a loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from teho.explain.activities import every_stack
from teho.model.program import MainProcess
from teho.model.watched import Frame, RepeatedPlan, Seen, is_library

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
    times: defaultdict[tuple[Frame, Frame], defaultdict[int, float]] = defaultdict(
        lambda: defaultdict(float)
    )
    stacks: defaultdict[tuple[Frame, Frame], dict[tuple[Frame, ...], float]] = defaultdict(dict)
    for plan, seen, wall_s in _in_calls(main):
        key = plan.call, plan.loop
        plans[key] = plan
        times[key][id(seen)] = wall_s  # several stacks may lead to the same call
        stacks[key][seen.frames] = stacks[key].get(seen.frames, 0.0) + wall_s
    found = [PlanTime(plans[key], sum(times[key].values()), stacks[key]) for key in plans]
    return sorted(found, key=lambda one: -one.wall_s)


def _in_calls(main: MainProcess) -> Iterator[tuple[RepeatedPlan, Seen, float]]:
    """Yield the stacks in these calls, with the time for which they stand."""
    for process, seen, wall_s in every_stack(main):
        innermost = next((frame for frame in seen.frames if not is_library(frame.file)), None)
        for plan in process.repeated_plans:
            if innermost == plan.call and plan.has(seen):
                yield plan, seen, wall_s
