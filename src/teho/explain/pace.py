"""The pace of a program at the moment."""

from __future__ import annotations

from teho.model.watched import WatchedProcess

__all__ = ["recent_pace"]

_RECENT_S = 60.0


def recent_pace(process: WatchedProcess) -> float | None:
    """Return the step rate of the last minute; None: the process has made steps for less time.

    If no step ended in the last minute, it is 0, unless steps take longer than that.
    """
    *earlier, last = process.progress
    begin_s = process.until_s - _RECENT_S
    before = [one for one in earlier if one.last_s <= begin_s]
    if not before:
        return None
    if last.last_s <= begin_s:
        return 0.0 if (last.steps_per_s or 0.0) * _RECENT_S >= 1 else None
    return (last.steps - before[-1].steps) / (last.last_s - before[-1].last_s)
