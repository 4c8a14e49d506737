"""The result of a plan: requests with their costs, and the reasons why others do not fit."""

from __future__ import annotations

from datetime import datetime

import msgspec

from teho.model.cluster import Automatic
from teho.model.request import Request

__all__ = [
    "Advice",
    "Answer",
    "Cost",
    "Given",
    "Option",
    "PastJob",
    "PastWait",
    "Refusal",
    "Unfit",
]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of a job that runs for its whole time."""

    amount: float
    unit: str
    """Unit of the site; empty if the site charges nothing (`amount` is 0)."""
    sum: str
    """The calculation, such as `(1 GPU × 60 + 10 cores) × 1 h`; empty if the site charges
    nothing."""
    gpu_share: float | None = None
    """Share of the GPUs in the bill (0..1). None: unknown."""
    source: str = ""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A warning about a request that the scheduler accepts."""

    kind: str
    """Stable name, such as `cores_above_share`."""
    sentence: str
    source: str


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The allocated and billed resources of each node: the request, or more.

    None: the value depends on the kind of node that the scheduler chooses.
    """

    cores: int | None
    cpus: int | None
    """CPUs as the scheduler counts them: cores or threads."""
    gpus: tuple[tuple[str, int], ...] | None
    """Types, each with its count."""
    memory_mib: int | None
    """None also if the site's default is not documented."""


class PastJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the user that has started."""

    partition: str
    gpus: int
    """Of the whole job."""
    cores: int
    """Of the whole job, as the scheduler counts them."""
    wait_s: float
    """Time from when it could start to its start."""


class PastWait(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting times of similar jobs of the user: from when a job could start, to its start."""

    median_s: float
    most_s: float
    """90 % of the jobs waited at most this long."""
    jobs: int
    """Number of similar jobs."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run the program, with all facts for script and submission."""

    cluster: str
    scheduler: str
    partition: str
    """Empty if jobs of the site name no partition."""
    label: str = ""
    """The partition's name on screen; never empty in an answer."""
    node_kind: str
    constraint: str = ""
    """Constraint that selects the kind of node, if the request needs one."""
    nodes: int
    gpus_per_node: int
    gpu_type: str
    gpu_is_typed: bool = True
    """Whether the scheduler knows the type and the script requests it."""
    gpu_memory_gib: float | None = None
    tasks_per_node: int
    cpus_per_task: int
    parallel_environment: str = ""
    """Of Grid Engine, for several cores; empty: not needed, or the site has its own option."""
    gpus_named: int | None = None
    """Number in the GPU option, if it counts GPUs per core instead of per node."""
    cpus_per_core: int = 1
    """CPUs per core that the script requests."""
    one_thread: bool = False
    """Whether the script requests one CPU per core, because node kinds differ in their threads."""
    memory_mib: int | None = None
    """Requested memory per node. None: the site sets it."""
    memory_per_gpu: bool = False
    """Whether memory is requested per GPU, because the site's default per GPU is too much."""
    given: Given | None = None
    """None in plans of older versions of Teho."""
    automatic: tuple[Automatic, ...] = ()
    """Resources that the site sets; the script must not request them."""
    local_disk_gib: float | None = None
    time_s: float
    account: str
    cost: Cost | None = None
    """None: the site's formula is not documented."""
    advice: tuple[Advice, ...] = ()
    expected_start_at: datetime | None = None
    """Expected start in UTC, if submitted now. None: unknown."""
    past_wait: PastWait | None = None
    """Waiting time of similar jobs. None: not asked, or fewer than five are known."""
    similar_jobs: int | None = None
    """Number of similar jobs of the user that are known. None: not asked."""
    unknown: tuple[str, ...] = ()
    """Unknown facts that could refuse or change the job, such as `limits of your account`."""
    request: Request


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that the request exceeds."""

    kind: str
    """Stable name, such as `too_many_gpus`."""
    sentence: str
    """The request and the limit."""
    source: str
    instead: str = ""
    """A request that would fit; empty if unknown."""


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, or one of its partitions, that the request does not fit."""

    cluster: str
    partition: str
    label: str = ""
    """The partition's name on screen; empty for a whole cluster."""
    refusals: tuple[Refusal, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The complete plan: options, cheapest first, and the places that do not fit."""

    options: tuple[Option, ...]
    unfit: tuple[Unfit, ...]
