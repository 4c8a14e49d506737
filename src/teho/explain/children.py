"""The work of the child processes for which a program waits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from teho.explain.where import doing_in, is_for_next_task, place_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Seen, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

__all__ = ["most_at_once", "only_answers", "worked_s"]

_MANAGER = lazy_pattern(r"multiprocess(ing)?/managers\.py:(BaseManager\.)?_run_server$")
_BOOTSTRAP = lazy_pattern(r"/multiprocess(ing)?/process\.py:(BaseProcess\.)?_bootstrap$")
_NO_WORK = frozenset((Doing.IMPORTING, Doing.ENDING))


def only_answers(seen: Seen) -> bool:
    """Return whether a stack is that of a manager of shared objects which reads and changes them.

    Not if it executes a function of the program, such as a method of a registered class.
    """
    if not any(_MANAGER.search(place_of(frame)) for frame in seen.own_frames):
        return False
    own = takewhile(
        lambda frame: frame.file != "<thread>" and not _BOOTSTRAP.search(place_of(frame)),
        seen.frames,
    )
    return all(is_library(frame.file) for frame in own)


def worked_s(main: MainProcess) -> float:
    """Return for how long child processes worked at least, in s.

    If several work at the same time, it counts once: at least as long as the child process with
    the most work, and as if all that were there at the same time shared the work equally.
    """
    works = [_worked_s(one) for one in main.children]
    if not works:
        return 0.0
    return max(*works, sum(works) / most_at_once(main.children))


def most_at_once(processes: Sequence[WatchedProcess]) -> int:
    """Return how many of some processes were there at the same time, at most; at least 1."""
    counts = (
        sum(other.began_s <= one.began_s < other.until_s for other in processes)
        for one in processes
    )
    return max(1, max(counts, default=1))


def _worked_s(process: WatchedProcess) -> float:
    return sum(
        seen.wall_s
        for seen in process.stacks
        if not is_for_next_task(seen)
        and not only_answers(seen)
        and doing_in(process, seen) not in _NO_WORK
    )
