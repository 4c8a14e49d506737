"""Pauses between two checks whether a child process has a result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from teho.explain.options import FoundOption, found_of_rule, lines_of_option
from teho.explain.shared_thresholds import chosen
from teho.explain.where import is_for_next_task
from teho.model.program import MainProcess
from teho.model.stack import Frame, State, is_library
from teho.model.watched import WatchedProcess

__all__ = ["WORKED_PERCENT", "LongPause", "long_pauses"]

_SELDOM, _AWAITED_TASKS = "checked_seldom", "tasks_awaited"
"""Names in costly_options.toml."""
WORKED_PERCENT = chosen(
    2.0,
    "%",
    "if the child processes work for less than this share of the time, the program waits for "
    "something else, such as an instrument",
)


class LongPause(NamedTuple):
    """A pause in which the program sleeps although its child processes have no work."""

    found: FoundOption
    """The call that sleeps, and its time."""
    worked_s: float
    """Time in which child processes may have worked, each one after the other."""
    slept_s: float
    """Time in which child processes slept before they looked again for a task."""

    @property
    def lost_s(self) -> float:
        """Time in which the program slept and no child process worked, at least."""
        return self.found.seconds - self.worked_s


def long_pauses(main: MainProcess, least_percent: float) -> Iterator[LongPause]:
    """Yield the pauses of a process in which it may wait for its child processes.

    Args:
        main: the process.
        least_percent: least work of the child processes, as a share of the process's time.
    """
    pauses = lines_of_option(main, _AWAITED_TASKS)
    children = [one for one in main.children if _is_of_program(one)]
    worked_s = sum(_worked_s(one, pauses) for one in children)
    slept_s = sum(_worked_s(one, frozenset()) for one in children) - worked_s
    if 100 * worked_s >= least_percent * main.process.wall_s:
        for found in found_of_rule(main, "checked_seldom"):
            if found.option.name == _SELDOM:
                yield LongPause(found, worked_s, slept_s)


def _is_of_program(process: WatchedProcess) -> bool:
    """Return whether a child process executes functions of the program."""
    return any(not is_library(one.file) for seen in process.stacks for one in seen.own_frames)


def _worked_s(process: WatchedProcess, pauses: frozenset[Frame]) -> float:
    """Return for how long a child process may have worked: it did not wait for its next task.

    Args:
        process: the child process.
        pauses: lines that sleep before they look again for a task.
    """
    return sum(
        seen.wall_s
        for seen in process.stacks
        if not is_for_next_task(seen)
        and (seen.state is not State.SLEEPING or pauses.isdisjoint(seen.own_frames))
    )
