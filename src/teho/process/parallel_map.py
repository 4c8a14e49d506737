"""Work on many things, shared out among processes: threads would wait for Python's lock."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from teho.process.child import fork_child

__all__ = ["parallel_map"]

T = TypeVar("T")
R = TypeVar("R")

_FEWEST = 4
"""Things for each process; for fewer it does not pay to start one."""
_MOST = 4


def parallel_map(function: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """Return what a function makes of each thing, in their order.

    If this process has threads of its own it does not fork, and does all itself; so it does with
    the share of a child that comes to nothing.

    Args:
        function: without side effects; its results can be pickled.
        things: to work on.
    """
    count = min(_MOST, len(os.sched_getaffinity(0)), len(things) // _FEWEST)
    if count < 2 or threading.active_count() > 1:
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


class _Share:
    """A part of the work, done in a child."""

    def __init__(self, function: Callable[[T], R], things: Sequence[T]) -> None:
        self._end, end = os.pipe()
        self._pid = fork_child(lambda: _answer(function, things, end))
        os.close(end)

    def results(self) -> list[Any] | None:
        """Return what it made; None if that is not whole."""
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
