"""One recorded run: the content of `run.json`."""

from __future__ import annotations

import enum
from datetime import datetime
from functools import cached_property
from typing import Annotated

import msgspec

from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.missing import Missing
from teho.model.native import NativeProgram

__all__ = [
    "FORMAT_VERSION",
    "TRIAL_TAG",
    "Absence",
    "Clock",
    "End",
    "IdleProcess",
    "IdleTime",
    "Import",
    "Node",
    "ProgramUse",
    "Run",
    "RunState",
    "ShellLoop",
    "Step",
    "Task",
    "Trouble",
]

_Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""UTC, with a time zone: times without one cannot be compared."""
_Period = Annotated[float, msgspec.Meta(gt=0)]
_FileName = Annotated[str, msgspec.Meta(pattern=r"^[^/]+$")]
"""A part of file names, so it must not leave the directory of the run."""
FORMAT_VERSION = 1
"""Version of the recording's layout; see docs/format.md."""

TRIAL_TAG = "trial"
"""Tag of the recordings of `teho submit --trial`: their report says if the long job may go."""


class RunState(str, enum.Enum):
    """State of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """The recording has no end: recorder or node was killed."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the recording, never of the program."""

    elapsed_s: float
    """Seconds after the start of the run."""
    what: str
    """One sentence for the report."""


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that could not be read on a device, since a moment."""

    device: str
    """Device id, or `node`."""
    metric: str
    missing: Missing
    since_s: float
    """Seconds from the start of the run to the first missing value."""


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of the program, from its supervisor.

    A job that was recorded from outside has no supervisor. Its `job_state` and the other facts are
    from the scheduler.
    """

    at: _Time
    """UTC."""
    elapsed_s: float
    """Wall time of the program, from a monotonic clock."""
    exit_code: int | None = None
    """None if a signal ended it."""
    signal: int | None = None
    job_state: str = ""
    """Of a job that was recorded from outside: a `JobState`; `running`: it continued."""
    on_purpose: str = ""
    """Why Teho ended a program without an error, such as `measured long enough`."""
    cpu_s: float | None = None
    """CPU time of the program and of its reaped descendants (wait4)."""
    peak_process_bytes: int | None = None
    """Largest resident set of one of its processes (wait4's ru_maxrss). The kernel counts from
    before the program's exec, so the value is at least the 15 MB of Teho."""


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Several tasks of a job that were started together: by `srun`, `mpirun` or `torchrun`."""

    key: str
    """Unique name of the step, the same for all its tasks: `slurm-lumi-1234.0`."""
    started_by: str
    """Program that started the tasks, such as `Slurm`."""
    began_on: str
    """Node that began the recording. All other clocks are compared with its clock."""
    task_count: int
    node_count: int | None = None
    """None: unknown."""
    hosts: tuple[str, ...] = ()
    """Names of its nodes, in the order of their tasks; empty if unknown."""


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of a step. Only the supervisor of its `teho run` writes it, at the end."""

    rank: int
    local_rank: int
    node: str
    """Host name."""
    pid: int
    """The program's process."""
    started_at: _Time
    """UTC, by the clock of its node."""
    end: End | None = None
    troubles: tuple[Trouble, ...] = ()


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Difference between a node's clock and the clock of the node that began the recording."""

    ahead_s: float
    """This node's time minus the other's, at the recorder's start."""
    uncertainty_s: float
    """Half of the shortest round trip: the maximum error of `ahead_s`."""


class ProgramUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often a program other than Python was seen on a node."""

    name: str
    """File name of the program."""
    samples: int
    """Number of samples in which at least one process of this program existed."""
    processes: int
    """Number of different processes that were seen. Short ones may have been missed."""
    command: str
    """Of all command lines of this program, the one that most processes had; secrets are masked."""
    command_samples: int
    """Number of samples with a process that had this command line."""
    command_processes: int
    """Number of different processes that had this command line."""


class ShellLoop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A loop of a shell script that starts programs in each iteration."""

    file: str
    """Name of the script, without its folder."""
    line: int
    """First line of the loop."""
    text: str
    """The begin of this line, such as `while read -r line`."""
    commands: tuple[tuple[int, str], ...]
    """Line and name of each program that the loop starts."""
    read_again: tuple[tuple[int, str], ...] = ()
    """Files that a program reads as a whole in each iteration: the line, and the file as the script
    has it, such as `$work/sheets.txt`."""


class IdleProcess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that waited while the program used no core of its node."""

    pid: int
    name: str
    """As the kernel names it."""
    state: str = ""
    """What its main thread waited for: a value of `State`. Empty: the kernel did not say this."""
    uninterruptible: bool = False
    """Whether no signal could end the wait, as during a write to a disk."""
    listens: bool = False
    """Whether it listens for connections."""
    terminal: bool = False
    """Whether its standard input is a terminal."""
    wakes_up: bool = True
    """Whether its main thread woke up once per second or more often, or this is not known."""


class IdleTime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time since the program used a core of its node the last time."""

    since_s: float
    """Its beginning, in seconds after the start of the recorder."""
    processes: tuple[IdleProcess, ...] = ()
    """The program's processes that have no child process."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node's part of a recording. Only the recorder of this node writes it."""

    name: _FileName
    """Host name."""
    started_at: _Time
    """UTC time of the recorder's monotonic zero."""
    started_s: float | None = None
    """The same moment on the node's monotonic clock, which the probes use."""
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
    """Ranks of the step's tasks on this node, as far as they are known."""
    clock: Clock | None = None
    """None on the node that began the recording, or if it is unknown."""
    clock_port: int | None = None
    """Port for comparing clocks, on the node that began a recording of several nodes."""
    program_samples: int = 0
    """Number of samples that listed other programs."""
    programs: tuple[ProgramUse, ...] = ()
    """Programs other than Python, those in most samples first."""
    shell_loops: tuple[ShellLoop, ...] = ()
    """Loops of the shell scripts that ran, as far as they start programs."""
    native: tuple[NativeProgram, ...] = ()
    """Functions of programs other than Python, the program with most samples first."""
    idle: IdleTime | None = None
    """What the processes wait for while they use no core. None: they have used one in the last
    minutes."""
    sealed: bool = False
    """Whether the recorder ended properly and all rows are in one file."""


class Import(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The origin of a recording that `teho import` made: logs of another program.

    The start and the end of the recording are the first and the last sample of the logs. The
    program, its cores and its exit code are not known.
    """

    tools: tuple[str, ...]
    """Programs that wrote the logs, such as `nvidia-smi`."""
    files: tuple[str, ...]
    """Names of the logs, without their folders."""
    means: tuple[str, ...] = ()
    """Metrics of which the logs have only one mean for the whole run."""
    at: _Time
    """UTC time of the import."""
    digest: str = ""
    """SHA-256 of the logs and of the user's options: the same import is not made twice."""


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """One recorded run: `run.json`, merged with the files of nodes and tasks.

    In a step of several tasks, `end` is not in a file. It is computed from the ends of all tasks,
    and is None until all have ended.
    """

    format: int
    """`FORMAT_VERSION` of the Teho that wrote it."""
    id: str
    name: str = ""
    tags: dict[str, str] = {}
    command: tuple[str, ...]
    """As typed, secrets masked; empty if it is not known."""
    directory: str = ""
    """Working directory of the program."""
    started_at: _Time
    """UTC."""
    host: str
    """Host name; empty if it is not known."""
    supervisor_pid: int | None = None
    supervisor_stamp: str = ""
    """Start time of that process in ticks, to recognise a later process with the same pid."""
    period_s: _Period = 1.0
    environment: dict[str, str] = {}
    """Only variables on the allow-list."""
    versions: dict[str, str] = {}
    step: Step | None = None
    """None: one program, started once."""
    end: End | None = None
    imported: Import | None = None
    """None: Teho recorded it."""
    is_automatic: bool = msgspec.field(default=False, name="unasked")  # the key in `run.json`
    """Whether `teho always` recorded it: `keep` and `keep_gb` in the settings limit these
    recordings."""
    troubles: tuple[Trouble, ...] = ()
    nodes: tuple[Node, ...] = ()
    tasks: tuple[Task, ...] = ()
    """Tasks of a step that have ended, by rank."""

    def node(self, name: str) -> Node | None:
        """Return the part of a node; None if the run has no node of this name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        # A report of a thousand nodes asks for a node a hundred thousand times.
        return {node.name: node for node in reversed(self.nodes)}

    def allocation(self, node_name: str) -> Allocation:
        """Return what the job was given on a node; an empty allocation if it is not known."""
        node = self.node(node_name)
        return node.allocation if node else Allocation()

    def number(self, variable: str) -> int | None:
        """Return the positive whole number in an environment variable; None if it has none."""
        text = self.environment.get(variable, "")
        return (int(text) or None) if text.isdecimal() else None

    def moment_s(self, node_name: str, at: datetime) -> float:
        """Return a node's UTC time as seconds after the run's start, by the run's clock.

        This is the clock of the node that began the run. If the difference between the clocks is
        unknown, they are assumed to agree.
        """
        node = self.node(node_name)
        ahead_s = node.clock.ahead_s if node and node.clock else 0.0
        return (at - self.started_at).total_seconds() - ahead_s

    @property
    def limit_s(self) -> float | None:
        """Seconds from the start of the program until the scheduler ends the job.

        If the scheduler does not say when it ends the job, the limit counts from the start of the
        program, although the job may have started earlier. None: no limit is known.
        """
        limits = [
            (node.allocation.ends_at - self.started_at).total_seconds()
            if node.allocation.ends_at
            else node.allocation.time_limit_s
            for node in self.nodes
        ]
        # If the limit was extended, the variables of the job still have its old end.
        return min((limit_s for limit_s in limits if limit_s and limit_s > 0), default=None)

    @property
    def may_have_other_gpus(self) -> bool:
        """Whether it may have GPUs of other jobs: a log of a node that does not name its job."""
        return self.imported is not None and not all(node.allocation.job_id for node in self.nodes)

    @property
    def has_tasks(self) -> bool:
        """Whether its end is computed from the ends of several tasks."""
        return self.step is not None and self.step.task_count > 1
