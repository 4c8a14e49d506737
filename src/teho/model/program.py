"""Time of a Python program by activity, from the notes of its probe."""

from __future__ import annotations

import enum
from typing import Union

import msgspec

from teho.model.stack import Frame
from teho.model.watched import Loader, WatchedProcess

__all__ = ["Doing", "Feed", "MainProcess", "OwnLine", "Part", "Program", "Section", "Spent"]


class Doing(str, enum.Enum):
    """Activity of a main thread; the value is its name in reports."""

    LOADING = "waiting for data"
    COPYING = "copying to the device"
    DEVICE = "waiting for the device"
    COMMUNICATING = "communicating"
    COMPILING = "compiling"
    SAVING = "saving"
    IMPORTING = "importing"
    PYTHON = "running Python code"
    """Python instructions, and calls of less than about 50 µs."""
    NATIVE = "computing in native code"
    """One longer call on the main thread."""
    THREADS = "computing in other threads"
    """The main thread waited for other threads of its process, which computed."""
    PROCESS = "waiting for a process"
    LOCK = "waiting for a lock"
    """The other threads of the process did not compute."""
    DISK = "waiting for disk"
    NETWORK = "waiting for the network"
    SLEEPING = "sleeping"
    CORE = "waiting for a core"
    """It was ready to run, but other threads used the cores."""
    ENDING = "Python start-up and exit"
    WAITING = "waiting (reason unknown)"


class Part(str, enum.Enum):
    """Work for the data while the program waits for them."""

    FETCHING = "fetching samples"
    OPENING = "opening and reading files"
    COLLATING = "putting batches together"
    STARTING = "starting workers"
    AWAITING = "waiting for workers"
    IDLE = "waiting to be asked"
    """Only of a worker."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one process in one activity."""

    doing: Doing
    wall_s: float
    lines: tuple[tuple[Frame, float], ...]
    """The program's lines that led to it, with the wall time of each in s, longest first."""


class Section(str, enum.Enum):
    """A part of the program; the value is its name in reports."""

    SET_UP = "set-up"
    """Before the first step."""
    LOOP = "steps"
    """From the first step on."""
    LOADER = "data loader"
    EVALUATION = "evaluation"
    CALLBACK = "callbacks"
    PROGRAM = "program"
    """The whole program, if it has no known steps."""


class OwnLine(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one line of the program in one section."""

    section: Section
    frame: Frame
    own_s: float
    """Time in the line and in the libraries that it called."""
    total_s: float
    """The same, with the functions of the program that it called."""
    doing: Doing
    """Activity with most of `own_s`, or of `total_s` if `own_s` is 0."""
    parts_percent: tuple[float, ...] = ()
    """Its share of each of equal parts of the run; empty if the run was short."""


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """Data loading of one process."""

    loader: Union[Loader, None]
    """Loader with the longest waiting time."""
    main_s: dict[Part, float]
    """Time of its main thread by kind of work; the sum is its input wait."""
    workers_s: dict[Part, float]
    """The same for the main threads of all its workers together."""
    workers: int
    """Number of workers seen."""
    workers_without_core_percent: Union[float, None] = None
    """Share of their time in which they waited for a core. None: unknown."""
    lines: tuple[tuple[Frame, float], ...]
    """Lines of the program that fetch samples, in any process, longest time first."""

    @property
    def wait_s(self) -> float:
        """Input wait of the process."""
        return sum(self.main_s.values())


class MainProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that does the program's work, one for each rank."""

    process: WatchedProcess
    spent: tuple[Spent, ...]
    """Activities, longest first; the sum is the whole time."""
    feed: Feed
    workers: tuple[WatchedProcess, ...] = ()
    """Workers of its data loaders."""
    children: tuple[WatchedProcess, ...] = ()
    """The other Python processes that it started, and that are not main processes."""

    def seconds(self, *doings: Doing) -> float:
        """Return the time of these activities in s."""
        return sum(spent.wall_s for spent in self.spent if spent.doing in doings)

    def percent(self, *doings: Doing) -> float:
        """Return the share of these activities in its time in %."""
        return 100 * self.seconds(*doings) / self.process.wall_s

    def lines(self, *doings: Doing) -> tuple[tuple[Frame, float], ...]:
        """Return the program's lines of the longest of these activities, longest time first."""
        return next((spent.lines for spent in self.spent if spent.doing in doings), ())

    @property
    def library(self) -> dict[str, object]:
        """Facts about PyTorch in this process."""
        return self.process.libraries.get("torch", {})


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """All Python processes that did the program's work, the longest first."""

    mains: tuple[MainProcess, ...]
