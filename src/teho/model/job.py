"""A job at a scheduler, and what Teho keeps of its submission."""

from __future__ import annotations

import enum
from datetime import datetime

import msgspec

from teho.model.plan import Option

__all__ = ["Job", "JobState", "Submission"]


class JobState(str, enum.Enum):
    """What a job is doing, in words that all schedulers share."""

    PENDING = "pending"
    HELD = "held"
    """It waits, and nothing happens until somebody releases or mends it."""
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
    """The scheduler knows no such job (yet), or says a word that Teho does not know."""

    @property
    def ended(self) -> bool:
        """Whether the job will not change any more."""
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
    """One job, or one task of an array. `None` and empty mean: not known."""

    id: str
    """As the scheduler writes it, such as `123`, `123_4`, `123_[5-9%2]`, `123+0` or `5.3`."""
    number: str
    """What the job, all its tasks and its components share, such as `123`."""
    task: str | None = None
    """Index in an array, or the indices that still wait, such as `4` or `5-9%2`."""
    name: str = ""
    state: JobState
    state_as_written: str = ""
    """The scheduler's own words, such as `CANCELLED by 1000` or `hqw`."""
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
    """Asked for or given, of the whole job."""
    submitted_at: datetime | None = None
    """UTC, as all times here."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    expected_start_at: datetime | None = None
    elapsed_s: float | None = None
    """Wall time since its start, without suspensions where the scheduler leaves them out."""
    time_limit_s: float | None = None
    exit_code: int | None = None
    """None too where it died by a signal, or where the scheduler ended it."""
    signal: int | None = None
    memory_peak_bytes: int | None = None
    """Largest resident set that the scheduler saw in one task (Slurm) or process (others)."""
    cpu_s: float | None = None
    energy_j: float | None = None
    billing: float | None = None
    """Slurm's `billing` of the allocation: what one minute counts in the site's formula."""
    comment: str = ""
    script: str = ""
    """Path of its script."""


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Teho keeps of a submission: written before the scheduler is asked, and after it."""

    mark: str
    """Unique; the job carries it (Slurm's comment, Grid Engine's context), to be found again."""
    scheduler: str
    """`slurm`, `grid_engine` or `local`."""
    cluster: str
    job: str | None = None
    """The job's number, such as `123`, or `123;puhti` of several clusters; None: not known."""
    name: str = ""
    submitted_at: datetime
    """UTC, just before the scheduler was asked."""
    directory: str
    """Where the job runs, absolute."""
    script: str
    """Path of the script, absolute."""
    log: str = ""
    """Pattern of the log's path as the script has it, such as `slurm-%j.out`; empty: default."""
    array: str = ""
    """Such as `1-10%2`; empty: no array."""
    option: Option | None = None
    recorded: bool = False
    """Whether the script runs the program through `teho run`."""

    @property
    def number(self) -> str:
        """The job's number alone, without the cluster behind it; empty if it is not known."""
        return (self.job or "").partition(";")[0]
