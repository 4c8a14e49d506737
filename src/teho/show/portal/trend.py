"""How the time of a program changed from run to run, and what was different then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from teho.model.listed_run import ListedRun
from teho.show.portal.languages import say
from teho.show.portal.query import compare_address, run_key
from teho.show.portal.words import gpu_text, moment_text
from teho.units import format_duration

__all__ = ["Change", "changes_of"]

_SAME_PERCENT = 5.0
"""Smaller differences of the time count as equal, as in `teho compare`."""
_SIDE = 5
"""Runs before and after a change that are compared, at most."""
_LEAST_SIDE = 2
"""The same, at least: the time of one run can be an exception."""
_ALLOWS_EXCEPTION = 4
"""Number of runs before or after a change among which one run can be an exception."""
_LEAST_GAP = 0.7
"""Smallest gap between the times before and after, as a part of the change of their median."""
_PLACES = ("cluster", "partition", "account")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence about the time of a program."""

    words: str
    tone: str
    compared: str
    """Address of the comparison of the runs before and after."""
    differences: tuple[str, ...] = ()
    """What else differed between these two runs, as far as the list knows it."""


def changes_of(runs: Sequence[ListedRun], *, scope: str = "") -> list[Change]:
    """Return the largest lasting change of the time, and the change of the newest run.

    Args:
        runs: runs of one command that ended well, oldest first.
        scope: `group`: they are shared runs.
    """
    times_s = [run.elapsed_s or 0.0 for run in runs]
    if len(runs) < 2 or min(times_s) <= 0:
        return []
    found = []
    place = lasting_change(times_s)
    if place is not None:
        before_s, after_s = (median(side) for side in _sides(times_s, place))
        found.append(_lasting(before_s, after_s, runs[place - 1], runs[place], scope))
    if place != len(runs) - _LEAST_SIDE or _percent(times_s[-2], times_s[-1]) >= _SAME_PERCENT:
        newest = _newest(runs[-2], runs[-1], scope)
        if not found or newest.tone != "unknown":
            found.append(newest)
    return found


def lasting_change(times_s: Sequence[float]) -> int | None:
    """Return the place of the first time after the largest lasting change; None: no such change.

    All times shortly before it are larger than all times shortly after it, or all are smaller, and
    the gap between them is wide. So a program whose time varies from run to run, or that becomes a
    little slower with each run, has no lasting change. One exception on each side is allowed if
    this side has at least four times.
    """
    widest, found = (0.0, 0.0), None
    for place in range(_LEAST_SIDE, len(times_s) - _LEAST_SIDE + 1):
        before, after = _sides(times_s, place)
        before_s, after_s = median(before), median(after)
        gap = _gap(_without_exceptions(before), _without_exceptions(after))
        is_wide = gap >= _LEAST_GAP * abs(math.log(after_s / before_s))
        # An exception beside the change must not move its place.
        width = gap, _gap(before, after)
        if width > widest and is_wide and _percent(before_s, after_s) >= _SAME_PERCENT:
            widest, found = width, place
    return found


def _gap(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the logarithm of the gap between two groups of times; negative if they overlap."""
    return math.log(max(min(after) / max(before), min(before) / max(after)))


def _sides(times_s: Sequence[float], place: int) -> tuple[Sequence[float], Sequence[float]]:
    return times_s[max(0, place - _SIDE) : place], times_s[place : place + _SIDE]


def _without_exceptions(times_s: Sequence[float]) -> Sequence[float]:
    """Leave out the smallest and the largest of many times."""
    return sorted(times_s)[1:-1] if len(times_s) >= _ALLOWS_EXCEPTION else times_s


def _percent(before_s: float, after_s: float) -> float:
    """Return the size of a change in percent of the time before."""
    return abs(100 * (after_s / before_s - 1))


def _lasting(
    before_s: float, after_s: float, before: ListedRun, after: ListedRun, scope: str
) -> Change:
    words = say("{} more time since {}: {} instead of {}")
    if after_s < before_s:
        words = say("{} less time since {}: {} instead of {}")
    return Change(
        words=words.format(
            f"{_percent(before_s, after_s):.0f} %",
            moment_text(after.began_s),
            format_duration(after_s),
            format_duration(before_s),
        ),
        tone="good" if after_s < before_s else "warning",
        compared=_address(before, after, scope),
        differences=tuple(_differences(before, after)),
    )


def _newest(before: ListedRun, last: ListedRun, scope: str) -> Change:
    before_s, last_s = before.elapsed_s or 0.0, last.elapsed_s or 0.0
    percent = _percent(before_s, last_s)
    words, tone = say("same time as the run before"), "unknown"
    if percent >= _SAME_PERCENT:
        words, tone = say("{} more time than the run before"), "warning"
        if last_s < before_s:
            words, tone = say("{} less time than the run before"), "good"
        words = words.format(f"{percent:.0f} %")
    return Change(
        words=words,
        tone=tone,
        compared=_address(before, last, scope),
        differences=tuple(_differences(before, last)) if tone != "unknown" else (),
    )


def _address(before: ListedRun, after: ListedRun, scope: str) -> str:
    return compare_address(run_key(before, scope=scope), run_key(after, scope=scope))


def _differences(before: ListedRun, after: ListedRun) -> Iterator[str]:
    """Yield what the list knows to be different in two runs."""
    yield from _code_differences(before, after)
    pairs = {
        say("GPUs"): (_gpus(before), _gpus(after)),
        say("nodes"): (str(before.nodes), str(after.nodes)),
    }
    for name, label in zip(_PLACES, ("Cluster", "Partition", "Project"), strict=True):
        pairs[say(label)] = (getattr(before, name), getattr(after, name))
    for key in sorted({*before.tags, *after.tags}):
        pairs[f"{say('tag')} {key}"] = (before.tags.get(key, ""), after.tags.get(key, ""))
    for label, (old, new) in pairs.items():
        if old != new:
            yield f"{label}: {old or say('none')} → {new or say('none')}"


def _code_differences(before: ListedRun, after: ListedRun) -> Iterator[str]:
    """Yield what is different in the code, if it is known of both runs."""
    if before.revision and after.revision and before.revision != after.revision:
        yield f"{say('commit')}: {before.revision} → {after.revision}"
    if before.program and after.program and before.program != after.program:
        yield say("{} was changed").format(after.program.rpartition(" ")[0])


def _gpus(run: ListedRun) -> str:
    return f"{run.gpus} × {gpu_text(run.gpu)}" if run.gpus and run.gpu else str(run.gpus or "")
