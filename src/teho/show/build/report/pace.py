"""The pace of a program in its report, and how long the program still needs."""

from __future__ import annotations

from collections.abc import Iterable

from teho.explain.pace import recent_pace
from teho.explain.time_left import time_left
from teho.model.document import Fact
from teho.model.missing import Missing
from teho.model.run import RunState
from teho.model.summary import Summary
from teho.model.watched import WatchedProcess
from teho.units import format_duration

__all__ = ["pace_facts"]

_PACE_CHANGE_PERCENT = 5
"""Smaller changes of the pace are not shown: steps are never all equally long."""


def pace_facts(state: RunState, summary: Summary) -> Iterable[Fact]:
    """Yield the step rate of the process that ran longest, if it made steps."""
    if not summary.program:
        return
    process = summary.program.mains[0].process
    progress = process.progress
    if not progress or not (pace := progress[-1].steps_per_s):
        return
    yield Fact("steps_per_s", "Pace", pace, "steps/s", f"over {progress[-1].steps:,} steps")
    recent = recent_pace(process)
    if state is RunState.RUNNING and recent is not None:
        change = 100 * (recent / pace - 1)
        note = f"{change:+.0f} %" if abs(change) >= _PACE_CHANGE_PERCENT else ""
        yield Fact("steps_per_s_now", "Pace of the last minute", recent, "steps/s", note)
    if state is RunState.RUNNING:
        yield _time_left_fact(process)


def _time_left_fact(process: WatchedProcess) -> Fact:
    left = time_left(process)
    if isinstance(left, Missing):
        return Fact("left_s", "Expected time left", left, "s", aside=True)
    done = 100 * left.total.done / left.total.total
    note = f"{done:.0f} % done, from {left.total.known_by}"
    change = 100 * (left.steady_left_s / left.left_s - 1) if left.left_s else 0.0
    if abs(change) >= _PACE_CHANGE_PERCENT:
        steady = format_duration(left.steady_left_s)
        note += f"; at the pace of the whole run: {steady}"
    return Fact("left_s", "Expected time left", left.left_s, "s", note)
