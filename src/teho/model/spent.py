"""Where the time of a Python program's main thread went, as its probe saw it."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Doing", "Frame", "Seen", "Spent", "WatchedProcess"]


class Doing(str, enum.Enum):
    """What a thread was doing."""

    LOADING = "waiting for data"
    COPYING = "copying to the device"
    DEVICE = "waiting for the device"
    COMMUNICATING = "communicating"
    COMPILING = "compiling"
    SAVING = "saving"
    IMPORTING = "importing"
    PYTHON = "Python itself"
    COMPUTING = "computing outside of Python"
    WAITING = "waiting"


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One function on a stack, and where in it."""

    file: str
    function: str
    line: int
    text: str
    """The call that was going on there, or its whole line; empty where its file does not read."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One stack, and the time for which it was there."""

    frames: tuple[Frame, ...]
    """The innermost first; empty where there were too many different ones to tell."""
    wall_s: float
    cpu_s: float
    """CPU time of the thread meanwhile."""
    held_s: float
    """Wall time after which Python code was still running, and let nobody else in."""


class WatchedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One Python process of the program."""

    node: str
    pid: int
    python: str
    """Its version."""
    began_s: float
    """Monotonic time at which it was first looked at."""
    until_s: float
    stacks: tuple[Seen, ...]

    @property
    def wall_s(self) -> float:
        """For how long it was looked at."""
        return self.until_s - self.began_s


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The time that one process spent doing one thing."""

    doing: Doing
    wall_s: float
    lines: tuple[tuple[Frame, float], ...]
    """The program's own lines that led to it, and the wall time of each in s, most first."""
