"""Sentences about what a process that is stuck waits for."""

from __future__ import annotations

import contextlib
import signal

from teho.explain.wording import joined
from teho.model.program import MainProcess
from teho.model.stack import Frame, is_library
from teho.model.watched import Death, WatchedProcess
from teho.patterns import lazy_pattern

__all__ = ["dead_sentence", "deaths_of", "other_lock"]

_MOST_DEAD = 3
_LOCKS = lazy_pattern(r"acquire\(|^(async )?with |^[\w.]+$")
"""The text of a line that takes a lock. For `with lock:`, it may be only `lock`."""


def other_lock(process: WatchedProcess) -> Frame | None:
    """Return the line of the program in which another thread of a process waits for a lock.

    None if no other thread does, or if its line is not known. A thread of a pool that waits for
    work waits inside a function of a library.
    """
    for frames in process.stayed.others if process.stayed else ():
        innermost = frames[0] if frames else None
        if innermost is None or is_library(innermost.file):
            continue
        # A call such as `queue.get()` does not wait for a lock.
        if _LOCKS.search(innermost.text):
            return innermost
    return None


def deaths_of(main: MainProcess, stopped_s: float | None) -> list[tuple[Death, str]]:
    """Return the child processes of a process that have ended, and how each ended.

    Workers also end without an error, such as at the end of an epoch. If it is not known that a
    child failed, it is returned only if all children that the probe recorded have ended.

    Args:
        main: a process that waits.
        stopped_s: monotonic time at which it stopped making progress. Of the children that ended
            without a known error, only those that ended after this time are returned. None: none.
    """
    found: dict[int, tuple[Death, str]] = {}
    children = [
        one for one in (*main.workers, *main.children) if one.parent_pid == main.process.pid
    ]
    all_ended = all(one.death is not None for one in children)
    for one in children:
        if one.death is None:
            continue
        failed = bool(one.death.status) or one.raised is not None
        is_last = all_ended and stopped_s is not None and one.death.at_s >= stopped_s
        if failed or is_last:
            why = f"ended with {one.raised.text}" if one.raised else _how(one.death)
            found[one.pid] = one.death, why
    for death in main.process.stayed.dead if main.process.stayed else ():
        if death.status and death.pid not in found:
            found[death.pid] = death, _how(death)
    return list(found.values())


def _how(death: Death) -> str:
    if death.status is None:
        return "no longer exists"
    number, code = death.status & 0x7F, death.status >> 8
    if number:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(number).name}"
        return f"was ended by the signal {number}"
    return f"ended with exit code {code}" if code else "has ended"


def dead_sentence(deaths: list[tuple[Death, str]]) -> str:
    """Return a sentence about ended child processes; empty if there are none."""
    if not deaths:
        return ""
    named = deaths[:_MOST_DEAD]
    texts = joined([f"process {death.pid} {how}" for death, how in named])
    more = len(deaths) - len(named)
    rest = f", and {more} more" if more else ""
    return f" Of the processes that it started, {texts}{rest}."
