"""One recorded run: what `run.json` holds."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated

import msgspec

from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.missing import Missing

__all__ = [
    "FORMAT_VERSION",
    "Absence",
    "Clock",
    "End",
    "Node",
    "Run",
    "RunState",
    "Step",
    "Task",
    "Trouble",
]

_Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""UTC; one without a time zone cannot be compared with another."""
_Period = Annotated[float, msgspec.Meta(gt=0)]
_FileName = Annotated[str, msgspec.Meta(pattern=r"^[^/]+$")]
"""Files are called after it, and those of a run are in its directory."""
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
    """How the program ended, as its supervisor saw it.

    A job that was recorded from outside has no supervisor of Teho's: there `job_state` is what the
    scheduler says of it, and the rest is known as far as the scheduler tells.
    """

    at: _Time
    """UTC."""
    elapsed_s: float
    """Wall time of the program, from a monotonic clock."""
    exit_code: int | None = None
    """None when it died by a signal."""
    signal: int | None = None
    job_state: str = ""
    """Of a job that was recorded from outside: a value of `JobState`; `running`: it went on."""
    on_purpose: str = ""
    """Why it was ended though nothing was wrong with it, such as `measured long enough`."""
    cpu_s: float | None = None
    """CPU time of the program and of the descendants that were waited for (wait4)."""
    peak_process_bytes: int | None = None
    """Largest resident set of any one of its processes (wait4's ru_maxrss), which the kernel
    counts from before the program's exec: never under Teho's own 15 MB."""


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What several tasks of a job were started as, together: `srun`, `mpirun`, one `torchrun`."""

    key: str
    """The same for all tasks of the step, and for no other step's: `slurm-lumi-1234.0`."""
    started_by: str
    """Who started the tasks, such as `Slurm`."""
    began_on: str
    """The node that began the recording; the clocks of all others are compared with its."""
    task_count: int
    node_count: int | None = None
    """None if nobody tells."""
    hosts: tuple[str, ...] = ()
    """Names of its nodes, in the order of their tasks; empty if nobody tells."""


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of a step, written at its end by the supervisor of its `teho run` alone."""

    rank: int
    local_rank: int
    node: str
    """Host name."""
    pid: int
    """The program's process."""
    started_at: _Time
    """UTC, by that node's clock."""
    end: End | None = None
    troubles: tuple[Trouble, ...] = ()


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """How a node's clock stands against that of the node which began the recording."""

    ahead_s: float
    """This node's time minus the other's, at the recorder's start."""
    uncertainty_s: float
    """Half of the shortest round trip: the true figure lies within this of `ahead_s`."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node's part of a recording, written by that node's recorder alone."""

    name: _FileName
    """Host name."""
    started_at: _Time
    """UTC time of the recorder's monotonic zero."""
    started_s: float | None = None
    """The same moment by the node's monotonic clock, which the probes tell."""
    period_s: _Period
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
    ranks: tuple[int, ...] = ()
    """Ranks of the step's tasks on this node, as far as they came forward."""
    clock: Clock | None = None
    """None on the node that began the recording, and where it could not be found out."""
    clock_port: int | None = None
    """On the node that began a recording of several: where its recorder tells the time."""
    sealed: bool = False
    """Whether the recorder came to its end, and all rows are in one file."""


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded run: `run.json`, with the nodes' and the tasks' own files merged in.

    If a step of several tasks is recorded, `end` is in no file: it is that of all
    tasks taken together, and None as long as one of them has not told its own.
    """

    format: int
    """`FORMAT_VERSION` of the Teho that wrote it."""
    id: str
    name: str = ""
    tags: dict[str, str] = {}
    command: tuple[str, ...]
    """As typed, secrets masked."""
    directory: str = ""
    """Working directory of the program."""
    started_at: _Time
    """UTC."""
    host: str
    supervisor_pid: int | None = None
    supervisor_stamp: str = ""
    """Start time of that process in ticks: tells it from a later one of the same pid."""
    period_s: _Period = 1.0
    environment: dict[str, str] = {}
    """Only names on the allow-list."""
    versions: dict[str, str] = {}
    step: Step | None = None
    """None: one program, started once."""
    end: End | None = None
    troubles: tuple[Trouble, ...] = ()
    nodes: tuple[Node, ...] = ()
    tasks: tuple[Task, ...] = ()
    """Those of a step that told their end, by rank."""

    def moment_s(self, node_name: str, at: datetime) -> float:
        """Return a node's UTC time as seconds after the run's start, by the run's clock.

        That is the clock of the node that began it; if the node's offset from it is not
        known, the clocks are taken to agree.
        """
        clocks = (node.clock for node in self.nodes if node.name == node_name)
        clock = next(clocks, None)
        return (at - self.started_at).total_seconds() - (clock.ahead_s if clock else 0.0)

    @property
    def has_tasks(self) -> bool:
        """Whether its end is that of several tasks, which each tell their own."""
        return self.step is not None and self.step.task_count > 1
