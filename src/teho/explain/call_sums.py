"""Sums of the time that a program was in some of its calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.explain.where import doing_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen

__all__ = ["CallSum", "Figures"]


class Figures(NamedTuple):
    """The time in some calls."""

    wall_s: float
    """Time of the main thread in them, or waiting for processes that were in them."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in them, in s."""
    lines: Sequence[tuple[Frame, float]]
    """The calls, each with its time in s, the longest first."""
    in_loading: bool
    """Whether most of it was in loading data."""


class CallSum:
    """The time in some calls.

    Args:
        main: the process.
    """

    def __init__(self, main: MainProcess) -> None:
        self._main = main
        self._seen: set[int] = set()
        self._stacks: defaultdict[tuple[Frame, ...], float] = defaultdict(float)
        self._lines: defaultdict[Frame, float] = defaultdict(float)
        self._loading_s = 0.0

    def add(self, call: Frame, seen: Seen, wall_s: float) -> None:
        """Add the time of a stack that is in a call; each stack counts once.

        Args:
            call: the line of the call.
            seen: the stack.
            wall_s: time of the main thread for which it stands.
        """
        if id(seen) in self._seen:
            return
        self._seen.add(id(seen))
        self._stacks[seen.frames] += wall_s
        self._lines[call] += wall_s
        if self._main.workers or doing_of(seen) is Doing.LOADING:
            self._loading_s += wall_s

    def figures(self) -> Figures:
        """Return the time so far."""
        wall_s = sum(self._stacks.values())
        lines = sorted(self._lines.items(), key=lambda one: -one[1])
        return Figures(wall_s, self._stacks, lines, 2 * self._loading_s > wall_s)
