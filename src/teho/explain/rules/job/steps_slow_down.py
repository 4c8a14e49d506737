"""Steps take longer and longer: the work for each step grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from teho.explain.lines import own_lines
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import MainProcess
from teho.model.stack import Frame, State
from teho.model.watched import Progress, WatchedProcess

RANK = 285
SEVERITY = "critical, warning"
THRESHOLDS = {
    "times_longer": chosen(
        1.5,
        "times",
        "if steps at the end take 1.5 times as long as steps at the beginning, this is more than "
        "chance",
    ),
    "grown_points": chosen(
        25.0,
        "%",
        "the time of a line of code has grown if the line's share of the time is 25 percentage "
        "points higher at the end than at the beginning",
    ),
    "last_percent": chosen(
        50.0,
        "%",
        "above this limit, the line whose time has grown takes most of the time at the end",
    ),
}
_MOST_OF_THE_RISE = 0.75
_LEAST = 0.01
"""Smallest share of time with a core that is used as a divisor."""
_TIMES_LONGER = "time of a step at the end, divided by the time of a step at the beginning"
MUTES = ("steps_uneven",)
MUTES_BECAUSE = "the steps become longer and longer, so the long steps are not exceptions"


def judge(context: ProgramContext) -> Findings:
    """Compare the steps of the last quarter of the run with the steps of the first quarter.

    In a program without steps, the shares of each line in the quarters of the run are compared: a
    line must grow from each quarter to the next, and take most of the time at the end.
    """
    for main in context.mains:
        growth = _growth(main.process)
        line = _grown(main, context)
        if growth is not None:
            if growth < context.limit("times_longer"):
                continue
            begin = f"Steps took {growth:.1f} times as long at the end as at the beginning"
        elif line is not None and not main.process.progress:
            begin = "The work grew during the run"
        else:
            continue
        # If each step took as long as at the beginning; steps are assumed to grow evenly.
        saved = 100 * (1 - 2 / (1 + growth)) if growth else 0.6 * line[2] if line else 0.0
        if not context.is_loss(saved / 100 * main.process.wall_s, main):
            continue
        where = (
            f": {line[0].short_place} took {line[1]:.0f} % of the "
            f"time in the first quarter of the run and {line[2]:.0f} % in the last quarter"
            if line
            else ""
        )
        yield context.lost(
            f"{begin}{where}.",
            share_percent=saved,
            evidence=(
                *([Evidence(_TIMES_LONGER, growth, "times")] if growth else []),
                *(
                    [
                        Evidence("time of the line in the first quarter of the run", line[1], "%"),
                        Evidence("time of the line in the last quarter of the run", line[2], "%"),
                    ]
                    if line
                    else []
                ),
            ),
            action=(
                "Do the same amount of work in each step. Update a result with only the newest "
                "data, instead of computing it from all data so far. Do not keep or join all "
                "earlier results. Search in a `set` or `dict` instead of a list."
            ),
            regain_percent=(saved / 2, saved),
            lines=[(line[0], 1.0)] if line else (),
        )
        return


def _growth(process: WatchedProcess) -> float | None:
    """Return the step time in the last quarter, in step times of the first; None: not known.

    The time in which the process waited for a core does not count: other programs took the core.
    """
    progress = process.progress
    if len(progress) < 4 or progress[-1].steps < 20:
        return None
    begin_s, end_s = progress[0].last_s, progress[-1].last_s
    quarter_s = (end_s - begin_s) / 4
    if quarter_s <= 0:
        return None
    early = [one for one in progress if one.last_s <= begin_s + quarter_s]
    late = [one for one in progress if one.last_s >= end_s - quarter_s]
    times = [_step_s(group) for group in (early, late)]
    if None in times or len(early) < 2 or len(late) < 2:
        return None
    first_s, last_s = times
    if not first_s or not last_s:
        return None
    return last_s / first_s * _with_core(process, -1) / max(_with_core(process, 0), _LEAST)


def _with_core(process: WatchedProcess, part: int) -> float:
    """Return the share of a quarter of the run in which the process did not wait for a core."""
    seen = process.parts[part] if process.parts else ()
    whole_s = sum(one.wall_s for one in seen)
    waited_s = sum(one.wall_s for one in seen if one.state is State.CORE)
    return 1 - waited_s / whole_s if whole_s else 1.0


def _step_s(progress: Sequence[Progress]) -> float | None:
    steps = progress[-1].steps - progress[0].steps if progress else 0
    return (progress[-1].last_s - progress[0].last_s) / steps if steps > 0 else None


def _grown(main: MainProcess, context: ProgramContext) -> tuple[Frame, float, float] | None:
    """Return the line that has grown most, with its first and last share; None if none has."""
    found = []
    for line in own_lines(main.process):
        parts = line.parts_percent
        if len(parts) < 4 or not _grows(parts):
            continue
        first, last = parts[0], parts[-1]
        if last - first >= context.limit("grown_points") and last >= context.limit("last_percent"):
            found.append((line.frame, first, last))
    return max(found, key=lambda one: one[2] - one[1], default=None)


def _grows(parts: Sequence[float]) -> bool:
    """Return whether a share grows all the time: a jump is another phase of the program."""
    rises = [later - earlier for earlier, later in pairwise(parts)]
    whole = parts[-1] - parts[0]
    # A line that did not run in the first quarter belongs to a later phase.
    return parts[0] > 0 and min(rises) >= 0 and max(rises) <= _MOST_OF_THE_RISE * whole
