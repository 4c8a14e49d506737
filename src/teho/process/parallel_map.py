"""Work in forked processes, because threads would wait for Python's lock."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from teho.process.child import fork_child

__all__ = ["in_child", "parallel_map"]

T = TypeVar("T")
R = TypeVar("R")

_FEWEST = 4
"""Smallest number of items for which starting a process is faster."""
_MOST = 4


def parallel_map(function: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """Return the function's result for each item, in order.

    This process does not fork if it has other threads: then it does all the work. It also does
    again the share of a child that failed.

    Args:
        function: without side effects; its results can be pickled.
        things: the items.
    """
    count = min(_MOST, len(os.sched_getaffinity(0)), len(things) // _FEWEST)
    if count < 2 or not _may_fork():
        return [function(thing) for thing in things]
    shares = [things[first::count] for first in range(count)]
    children = [_Share(function, share) for share in shares[1:]]
    try:
        done = [[function(thing) for thing in shares[0]]]
    finally:
        theirs: list[list[R] | None] = [child.results() for child in children]
    for share, results in zip(shares[1:], theirs, strict=True):
        done.append([function(thing) for thing in share] if results is None else results)
    return [done[place % count][place // count] for place in range(len(things))]


def in_child(work: Callable[[], R]) -> Callable[[], R]:
    """Start some work in a child process, and return a function that waits for its result.

    If there is only one core, if this process has other threads, or if the child fails, the
    function does the work itself.

    Args:
        work: without side effects; its result can be pickled.
    """
    if len(os.sched_getaffinity(0)) < 2 or not _may_fork():
        return work
    child = _Share(lambda _: work(), [None])

    def result() -> R:
        results = child.results()
        return work() if results is None else results[0]

    return result


def _may_fork() -> bool:
    return threading.active_count() == 1


class _Share:
    """A part of the work, done in a child process."""

    def __init__(self, function: Callable[[T], R], things: Sequence[T]) -> None:
        self._end, end = os.pipe()
        self._pid = fork_child(lambda: _answer(function, things, end))
        os.close(end)

    def results(self) -> list[Any] | None:
        """Wait for the child's results; None if it failed."""
        with os.fdopen(self._end, "rb") as answer:
            data = answer.read()
        os.waitpid(self._pid, 0)
        try:
            return list(pickle.loads(data))  # noqa: S301 - our own child's
        except (EOFError, pickle.UnpicklingError):
            return None


def _answer(function: Callable[[T], R], things: Sequence[T], end: int) -> None:
    with os.fdopen(end, "wb") as answer:
        pickle.dump([function(thing) for thing in things], answer, pickle.HIGHEST_PROTOCOL)
