"""A job of a scheduler, and Teho's record of its submission."""

from __future__ import annotations

import enum
from datetime import datetime

import msgspec

from teho.model.plan import Option

__all__ = ["Job", "JobState", "RunningJob", "Submission"]


class JobState(str, enum.Enum):
    """State of a job, in words for all schedulers."""

    PENDING = "pending"
    HELD = "held"
    """It waits until a person releases or corrects it."""
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    """The program has ended; the scheduler is still cleaning up."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAILED = "node_failed"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"
    """The scheduler does not know the job (yet), or Teho does not know the state."""

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self in _ENDED


_ENDED = frozenset(
    {
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.TIMED_OUT,
        JobState.OUT_OF_MEMORY,
        JobState.NODE_FAILED,
        JobState.PREEMPTED,
    }
)


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One job, or one task of an array. `None` and empty mean: unknown."""

    id: str
    """As the scheduler writes it, such as `123`, `123_4`, `123_[5-9%2]`, `123+0` or `5.3`."""
    number: str
    """Common number of the job, its tasks and its components, such as `123`."""
    task: str | None = None
    """Index in an array, or the indices of waiting tasks, such as `4` or `5-9%2`."""
    name: str = ""
    state: JobState
    state_as_written: str = ""
    """State in the scheduler's words, such as `CANCELLED by 1000` or `hqw`."""
    reason: str = ""
    """Why it waits or failed, in the scheduler's words."""
    partition: str = ""
    """Slurm's partition, Grid Engine's queue."""
    account: str = ""
    node_list: str = ""
    nodes: int | None = None
    cores: int | None = None
    """As the scheduler counts them: Slurm's CPUs, Grid Engine's slots."""
    gpus: int | None = None
    """Of the whole job."""
    memory_bytes: int | None = None
    """Requested or allocated memory of the whole job."""
    submitted_at: datetime | None = None
    """UTC, like all times here."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    expected_start_at: datetime | None = None
    elapsed_s: float | None = None
    """Wall time since its start, without suspensions if the scheduler excludes them."""
    time_limit_s: float | None = None
    exit_code: int | None = None
    """None also if a signal or the scheduler ended it."""
    signal: int | None = None
    memory_peak_bytes: int | None = None
    """Largest resident set of one task (Slurm) or process (others), from the scheduler."""
    cpu_s: float | None = None
    energy_j: float | None = None
    billing: float | None = None
    """Slurm's `billing` of the allocation: the value of one minute in the site's formula."""
    comment: str = ""
    script: str = ""
    """Path of its script."""


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has nodes."""

    number: str
    """As in the variables of its processes: in Slurm, a task of an array has its own number."""
    key: str
    """An id that no other job, and no earlier run of this job, has."""
    hosts: tuple[str, ...]
    """Its nodes."""
    host: str = ""
    """The node that is this machine; empty: this is another machine."""
    name: str = ""
    script: str = ""
    """Path of its script."""
    variables: dict[str, str] = {}
    """Variables that only its processes have, with their values; empty: Slurm's variables."""

    @property
    def others(self) -> tuple[str, ...]:
        """Its nodes without this machine."""
        return tuple(host for host in self.hosts if host != self.host)


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Teho's record of a submission, written before and after the call of the scheduler."""

    mark: str
    """Unique mark in the job (Slurm's comment, Grid Engine's context), by which Teho finds it."""
    scheduler: str
    """`slurm`, `grid_engine` or `local`."""
    cluster: str
    job: str | None = None
    """Number of the job, such as `123`, or `123;puhti` with several clusters; None: unknown."""
    name: str = ""
    submitted_at: datetime
    """UTC, just before the call of the scheduler."""
    directory: str
    """Working directory of the job, absolute."""
    script: str
    """Path of the script, absolute."""
    log: str = ""
    """Pattern of the log's path in the script, such as `slurm-%j.out`; empty: default."""
    array: str = ""
    """Indices of an array, such as `1-10%2`; empty: no array."""
    option: Option | None = None
    recorded: bool = False
    """Whether the script runs the program through `teho run`."""

    @property
    def number(self) -> str:
        """Number of the job without the cluster; empty if unknown."""
        return (self.job or "").partition(";")[0]
