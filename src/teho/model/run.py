"""One recorded run: what `run.json` holds."""

from __future__ import annotations

import enum
from datetime import datetime

import msgspec

from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.missing import Missing

__all__ = ["FORMAT_VERSION", "Absence", "End", "Node", "Run", "RunState", "Trouble"]

FORMAT_VERSION = 1
"""Version of the recording's layout; see docs/format.md."""


class RunState(str, enum.Enum):
    """How far a run has come."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """The recording stops without an end: recorder or node was killed."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that went wrong with the recording, never with the program."""

    elapsed_s: float
    """Seconds after the start of the run."""
    what: str
    """One sentence for the report."""


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that could not be read on a device, from some moment on."""

    device: str
    """Device id, or `node`."""
    metric: str
    missing: Missing
    since_s: float
    """Seconds after the start of the run at which it first went missing."""


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the program ended, as its supervisor saw it."""

    at: datetime
    """UTC."""
    elapsed_s: float
    """Wall time of the program, from a monotonic clock."""
    exit_code: int | None = None
    """None when it died by a signal."""
    signal: int | None = None
    cpu_s: float
    """CPU time of the program and of the descendants that were waited for (wait4)."""
    peak_process_bytes: int
    """Largest resident set of any one of its processes (wait4's ru_maxrss), which the kernel
    counts from before the program's exec: never under Teho's own 15 MB."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node's part of a recording, written by that node's recorder alone."""

    name: str
    """Host name."""
    started_at: datetime
    """UTC time of the recorder's monotonic zero."""
    period_s: float
    """Time between two samples."""
    cores: tuple[int, ...] = ()
    core_count_node: int | None = None
    """Logical CPUs of the whole node."""
    memory_node_bytes: int | None = None
    cpu_model: str = ""
    allocation: Allocation = Allocation()
    devices: tuple[Device, ...] = ()
    absences: tuple[Absence, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    notes: tuple[str, ...] = ()
    program_pid: int | None = None
    recorder_pid: int | None = None
    sealed: bool = False


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded run. On disk: `run.json`, with each node's part merged in when read."""

    format: int
    """`FORMAT_VERSION` of the Teho that wrote it."""
    id: str
    name: str = ""
    tags: dict[str, str] = {}
    command: tuple[str, ...]
    """As typed, secrets masked."""
    directory: str = ""
    """Working directory of the program."""
    started_at: datetime
    """UTC."""
    host: str
    supervisor_pid: int | None = None
    supervisor_stamp: str = ""
    """Start time of that process in ticks: tells it from a later one of the same pid."""
    period_s: float = 1.0
    environment: dict[str, str] = {}
    """Only names on the allow-list."""
    versions: dict[str, str] = {}
    end: End | None = None
    troubles: tuple[Trouble, ...] = ()
    nodes: tuple[Node, ...] = ()
