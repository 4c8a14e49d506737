"""What many jobs used and wasted: a line for each job, and the sums of a period."""

from __future__ import annotations

from datetime import datetime
from typing import Union

import msgspec

from teho.model.finding import Threshold
from teho.model.job import JobState

__all__ = [
    "Amounts",
    "Change",
    "Digest",
    "Ending",
    "JobLine",
    "JobList",
    "Mail",
    "Mailing",
    "Person",
    "WasteOfKind",
]


class JobLine(msgspec.Struct, frozen=True, kw_only=True):
    """One job, or one task of an array, in a list of jobs. None: not known."""

    id: str
    tasks: int = 1
    """Number of tasks of an entry such as `123_[5-9]`, which waits."""
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    state: JobState
    state_as_written: str = ""
    submitted_at: Union[datetime, None] = None
    started_at: Union[datetime, None] = None
    ended_at: Union[datetime, None] = None
    wait_s: Union[float, None] = None
    """Time in the queue."""
    elapsed_s: Union[float, None] = None
    time_limit_s: Union[float, None] = None
    node_list: str = ""
    nodes: Union[int, None] = None
    cores: Union[int, None] = None
    cores_used: Union[float, None] = None
    """CPU time divided by wall time."""
    memory_bytes: Union[int, None] = None
    """Requested or allocated memory of the whole job."""
    memory_least_bytes: Union[int, None] = None
    """Peak of the largest task: the job used at least this."""
    memory_most_bytes: Union[int, None] = None
    """Sum of the peaks of all tasks: the job used at most this."""
    gpus: Union[int, None] = None
    gpu_type: str = ""
    gpu_busy_percent: Union[float, None] = None
    """Mean over all GPUs of the job; null if one of them is not known."""
    core_hours: Union[float, None] = None
    gpu_hours: Union[float, None] = None
    billing_hours: Union[float, None] = None
    """Slurm's `billing` of the job times its hours."""
    cost: Union[float, None] = None
    """By the billing formula of the cluster, in `cost_unit`; 0 with an empty `cost_unit`: free of
    charge. Null: the formula or a value for it is not known."""
    cost_unit: str = ""
    """The billing unit of the cluster, such as `GPU BU`."""
    energy_j: Union[float, None] = None
    exit_code: Union[int, None] = None
    signal: Union[int, None] = None
    wasted_gpu_hours: Union[float, None] = None
    """GPU-hours that the job did not use, if this is a kind of waste. Null: not judged, for example
    because the use of the GPUs is not known, or because the job was short or has not ended."""
    wasted_core_hours: Union[float, None] = None
    """As `wasted_gpu_hours`, for cores. The cores of jobs with GPUs are not judged."""
    wasted_gib_hours: Union[float, None] = None
    """As `wasted_core_hours`, for memory: GiB times hours."""
    waste: tuple[str, ...] = ()
    """Kinds of waste, the most important one first."""
    look: str = ""  # the column of `teho jobs --format csv`
    """What to check, in some words; empty: no waste and no failure."""
    recordings: tuple[str, ...] = ()
    """Ids of the recordings of this job, oldest first."""
    source: str = ""
    """Command that printed the figures."""


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a period: running jobs first, then the newest."""

    schema: str = "teho.jobs/1"
    since: datetime
    jobs: tuple[JobLine, ...]
    notes: tuple[str, ...] = ()


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """An amount of resources."""

    gpu_hours: float = 0.0
    core_hours: float = 0.0
    gib_hours: float = 0.0
    """GiB of memory times hours."""
    billing_hours: Union[float, None] = None
    """Slurm's `billing` times hours. None: the scheduler has no such figure."""
    costs: dict[str, float] = {}
    """Cost in each billing unit, such as `GPU BU`, by the formulas of the clusters. Of waste: the
    part of GPUs and cores that were not used; the part of memory and time is not known."""
    energy_j: Union[float, None] = None
    """Energy of GPUs without work, as far as recordings have it. None: no recording has it."""


class WasteOfKind(msgspec.Struct, frozen=True, kw_only=True):
    """All waste of one kind in a period."""

    kind: str
    """Fixed name."""
    title: str
    rule: str
    """The rule whose threshold was used."""
    threshold: Threshold
    source: str
    """Where the figures are from."""
    jobs: int
    amounts: Amounts
    examples: tuple[str, ...]
    """Ids of the jobs with the most waste of this kind, at most five."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a request that would have saved resources."""

    sentence: str
    action: str
    """What to change; commands are in backquotes."""
    kind: str
    jobs: int
    saves: Amounts


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs that ended in one way, or have not ended."""

    state: JobState
    jobs: int
    used: Amounts


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one user."""

    user: str
    jobs: int
    used: Amounts
    wasted: Amounts


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of a period used and wasted."""

    schema: str = "teho.digest/1"
    since: datetime
    until: datetime
    selection: str = msgspec.field(name="whose")  # the key in `teho digest --format json`
    """Whose jobs these are, such as `user anna`."""
    jobs: int
    used: Amounts
    cost_unknown_jobs: int = 0
    """Number of jobs whose cost is not known: it is not in `used.costs`."""
    energy_j: Union[float, None] = None
    """Sum over the jobs whose energy the accounting has. None: of no job."""
    energy_jobs: int = 0
    """Number of jobs in this sum."""
    wasted: Amounts
    """Without the GPUs of `gpus_blocked`, which the jobs did not have."""
    waste: tuple[WasteOfKind, ...]
    """The most waste first."""
    unjudged_gpu_hours: float
    """GPU-hours for which the accounting has no use of the GPUs."""
    unjudged_core_hours: float
    """Core-hours of jobs without GPUs for which the accounting has no CPU time."""
    short_jobs: int
    """Jobs that were too short to judge."""
    short_below_s: float
    """Shorter jobs are too short."""
    endings: tuple[Ending, ...]
    people: tuple[Person, ...]
    changes: tuple[Change, ...]
    """The changes that would have saved most, at most three."""
    used_before: Union[Amounts, None] = None
    """Use in the period of the same length before this one. None: it had no jobs."""
    wasted_before: Union[Amounts, None] = None
    notes: tuple[str, ...] = ()


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """What happens with the mail to one user."""

    user: str
    address: str
    wasted: Amounts
    state: str
    """`planned`, `sent`, `failed`, or `skipped`."""
    reason: str = ""
    """Why it was not sent."""
    last_at: Union[datetime, None] = None
    """Time of the last mail to this user. None: there was none."""


class Mailing(msgspec.Struct, frozen=True, kw_only=True):
    """Mails about the waste of a period, one for each user."""

    schema: str = "teho.mailing/1"
    since: datetime
    until: datetime
    is_sent: bool
    """Whether the mails were sent. If not, they are only shown."""
    mails: tuple[Mail, ...]
    """The user with the most waste first."""
    example_title: str = ""
    """Title of the first mail."""
    example: str = ""
    """Text of the first mail."""
    notes: tuple[str, ...] = ()
