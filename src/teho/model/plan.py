"""What to ask for, at what cost, and what does not fit and why."""

from __future__ import annotations

from datetime import datetime

import msgspec

from teho.model.cluster import Automatic
from teho.model.request import Request

__all__ = ["Advice", "Answer", "Cost", "Given", "Option", "Refusal", "Unfit"]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A job's bill if it runs for its whole time."""

    amount: float
    unit: str
    """The site's own; empty if nothing is charged, and `amount` is then 0."""
    sum: str
    """The sum as one would write it, such as `(1 GPU × 60 + 10 cores) × 1 h`; empty if
    nothing is charged."""
    gpu_share: float | None = None
    """Part of the bill that the GPUs are (0..1); None if the bill does not report."""
    source: str = ""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A warning: the request will be taken, and something about it is not wise."""

    kind: str
    """Stable name, such as `cores_above_share`."""
    sentence: str
    source: str


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler gives and bills on each node: what was asked for, or more.

    None: it depends on which of several kinds of node the job comes to.
    """

    cores: int | None
    cpus: int | None
    """As the scheduler counts them: threads where it counts threads."""
    gpus: tuple[tuple[str, int], ...] | None
    """Types, each with its count."""
    memory_mib: int | None
    """None too if the site's default is not documented."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run the program: everything that the script and the submission need."""

    cluster: str
    scheduler: str
    partition: str
    """Empty if the site's jobs name none."""
    label: str = ""
    """The partition's name on screen; never empty in an answer."""
    node_kind: str
    constraint: str = ""
    """What picks the kind of node, where the request needs it."""
    nodes: int
    gpus_per_node: int
    gpu_type: str
    gpu_is_typed: bool = True
    """Whether the scheduler knows the type, so that the script names it."""
    gpu_memory_gib: float | None = None
    tasks_per_node: int
    cpus_per_task: int
    parallel_environment: str = ""
    """Grid Engine's, for more than one core; empty: it needs none, or the site has its own word."""
    gpus_named: int | None = None
    """What the option for GPUs names, where it is not the GPUs of a node but those of a core."""
    cpus_per_core: int = 1
    """CPUs that the scheduler counts for a core, and the script asks for."""
    one_thread: bool = False
    """Whether the script asks for one CPU of each core, as kinds of node differ in their number."""
    memory_mib: int | None = None
    """Of each node, and to be named; None: it comes by itself or is left to the site."""
    memory_per_gpu: bool = False
    """Whether the script says it for each GPU, as the site's default for them is too much."""
    given: Given | None = None
    """None: in plans of an older Teho."""
    automatic: tuple[Automatic, ...] = ()
    """What comes by itself: the script must not name it."""
    local_disk_gib: float | None = None
    time_s: float
    account: str
    cost: Cost | None = None
    """None: the site's formula is not documented."""
    advice: tuple[Advice, ...] = ()
    expected_start_at: datetime | None = None
    """When the scheduler would start it, were it submitted now; UTC. None: not asked, not told."""
    unknown: tuple[str, ...] = ()
    """What could refuse or change the job and cannot be known, such as `limits of your account`."""
    request: Request


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that the request breaks."""

    kind: str
    """Stable name, such as `too_many_gpus`."""
    sentence: str
    """What was asked, what is allowed."""
    source: str
    instead: str = ""
    """What would fit, where that can be said."""


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, or one of its partitions, that the request does not fit."""

    cluster: str
    partition: str
    label: str = ""
    """The partition's name on screen; empty for a whole cluster."""
    refusals: tuple[Refusal, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a plan says: what fits, cheapest first, and why the rest does not."""

    options: tuple[Option, ...]
    unfit: tuple[Unfit, ...]
