"""Work in forked processes, because threads would wait for Python's lock."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from teho.process.child import fork_child

__all__ = ["ChildWork", "in_child", "parallel_map"]

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


class ChildWork(Generic[R]):
    """Some work, in a child process if possible. A call waits for its result.

    If there is only one core, if this process has other threads, or if the child fails, the call
    does the work itself.

    Args:
        work: without side effects; its result can be pickled.
        is_group: whether the child is in a process group of its own, so that `end` ends its
            children too.
        nice: how far the child lets other processes go first; see nice(2).
    """

    def __init__(self, work: Callable[[], R], *, is_group: bool = False, nice: int = 0) -> None:
        self._work = work
        self._is_ended = False
        may_fork = len(os.sched_getaffinity(0)) > 1 and _may_fork()
        self._share = (
            _Share(lambda _: work(), [None], is_group=is_group, nice=nice) if may_fork else None
        )

    def __call__(self) -> R:
        """Return the result.

        Raises:
            ChildProcessError: the work was ended.
        """
        results = None if self._share is None else self._share.results()
        if self._is_ended:
            raise ChildProcessError("the work was ended")
        if results is None:
            return self._work()
        result: R = results[0]
        return result

    @property
    def has_child(self) -> bool:
        """Whether a child process does the work."""
        return self._share is not None

    def end(self) -> None:
        """End the child: its result is no longer needed."""
        self._is_ended = True
        if self._share is not None:
            self._share.end()


def in_child(work: Callable[[], R]) -> ChildWork[R]:
    """Start some work in a child process; a call of the result waits for it."""
    return ChildWork(work)


def _may_fork() -> bool:
    return threading.active_count() == 1


class _Share:
    """A part of the work, done in a child process."""

    def __init__(
        self,
        function: Callable[[T], R],
        things: Sequence[T],
        *,
        is_group: bool = False,
        nice: int = 0,
    ) -> None:
        self._end, end = os.pipe()
        self._is_running = True
        self._is_group = is_group

        def work() -> None:
            if is_group:
                os.setpgid(0, 0)
            os.nice(nice)
            _answer(function, things, end)

        self._pid = fork_child(work)
        if is_group:
            with contextlib.suppress(OSError):  # the child has done it, or has ended
                os.setpgid(self._pid, self._pid)
        os.close(end)

    def results(self) -> list[Any] | None:
        """Wait for the child's results; None if it failed."""
        with os.fdopen(self._end, "rb") as answer:
            data = answer.read()
        self._is_running = False
        os.waitpid(self._pid, 0)
        try:
            return list(pickle.loads(data))  # noqa: S301 - our own child's
        except (EOFError, pickle.UnpicklingError):
            return None

    def end(self) -> None:
        """End the child; if it is in a group of its own, the whole group."""
        if self._is_running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if self._is_group else os.kill)(self._pid, signal.SIGKILL)


def _answer(function: Callable[[T], R], things: Sequence[T], end: int) -> None:
    with os.fdopen(end, "wb") as answer:
        pickle.dump([function(thing) for thing in things], answer, pickle.HIGHEST_PROTOCOL)
