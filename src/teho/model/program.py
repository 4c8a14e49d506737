"""What a Python program did with its time: the digest of what its probe saw."""

from __future__ import annotations

import enum
from typing import Union

import msgspec

from teho.model.watched import Frame, Loader, WatchedProcess

__all__ = ["Doing", "Feed", "MainProcess", "OwnLine", "Part", "Program", "Section", "Spent"]


class Doing(str, enum.Enum):
    """What a main thread was doing; the value is what reports call it."""

    LOADING = "waiting for data"
    COPYING = "copying to the device"
    DEVICE = "waiting for the device"
    COMMUNICATING = "communicating"
    COMPILING = "compiling"
    SAVING = "saving"
    IMPORTING = "importing"
    PYTHON = "running Python code"
    """Its own instructions, and calls of less than some 50 µs."""
    NATIVE = "computing in native code"
    """One longer call on the main thread."""
    THREADS = "computing in other threads"
    """The main thread waited for other threads of its process, and these computed."""
    PROCESS = "waiting for a process"
    LOCK = "waiting for a lock"
    """Other threads of the process did not compute either."""
    DISK = "waiting for disk"
    NETWORK = "waiting for the network"
    SLEEPING = "sleeping"
    CORE = "waiting for a core"
    """It could have run, and other threads had the cores."""
    ENDING = "Python start-up and exit"
    WAITING = "waiting (reason unknown)"


class Part(str, enum.Enum):
    """What is done for data while they are waited for."""

    FETCHING = "fetching samples"
    OPENING = "opening and reading files"
    COLLATING = "putting batches together"
    STARTING = "starting workers"
    AWAITING = "waiting for workers"
    IDLE = "waiting to be asked"
    """A worker's."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The time that one process spent doing one thing."""

    doing: Doing
    wall_s: float
    lines: tuple[tuple[Frame, float], ...]
    """The program's own lines that led to it, and the wall time of each in s, most first."""


class Section(str, enum.Enum):
    """A part of the program; the value is what reports call it."""

    SET_UP = "set-up"
    """Before the first step."""
    LOOP = "steps"
    """From the first step on."""
    LOADER = "data loader"
    EVALUATION = "evaluation"
    CALLBACK = "callbacks"
    PROGRAM = "program"
    """All of it, if no steps are known."""


class OwnLine(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one line of the program's own, in one section of it."""

    section: Section
    frame: Frame
    own_s: float
    """In it and in what it called of libraries."""
    total_s: float
    """In what it called of the program's own functions too."""
    doing: Doing
    """What took most of `own_s`, or of `total_s` if that is 0."""
    parts_percent: tuple[float, ...] = ()
    """Its own share of equal parts of the run; empty if the run was short."""


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """How one process got its data."""

    loader: Union[Loader, None]
    """The one that it waited for the longest."""
    main_s: dict[Part, float]
    """What its main thread did of it itself; together all that it waited for data."""
    workers_s: dict[Part, float]
    """The same of the main threads of its workers, all together."""
    workers: int
    """How many workers were seen."""
    workers_without_core_percent: Union[float, None] = None
    """For how much of their time they could have run, and had no core; None: not known."""
    lines: tuple[tuple[Frame, float], ...]
    """The program's own lines that fetch samples, in whichever process, most time first."""

    @property
    def wait_s(self) -> float:
        """For how long it waited for data."""
        return sum(self.main_s.values())


class MainProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that does the program's work: one for each rank."""

    process: WatchedProcess
    spent: tuple[Spent, ...]
    """Most time first; adds up to all of it."""
    feed: Feed

    def seconds(self, *doings: Doing) -> float:
        """Return for how long it did any of these."""
        return sum(spent.wall_s for spent in self.spent if spent.doing in doings)

    def percent(self, *doings: Doing) -> float:
        """Return which share of its time it did any of these."""
        return 100 * self.seconds(*doings) / self.process.wall_s

    def lines(self, *doings: Doing) -> tuple[tuple[Frame, float], ...]:
        """Return its own lines that did whichever of these took longest, most seconds first."""
        return next((spent.lines for spent in self.spent if spent.doing in doings), ())

    @property
    def library(self) -> dict[str, object]:
        """What is known of PyTorch in it."""
        return self.process.libraries.get("torch", {})


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """All Python processes that did the program's work, the longest first."""

    mains: tuple[MainProcess, ...]
