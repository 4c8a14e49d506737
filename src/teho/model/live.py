"""The newest sample of a node, which its recorder sends to viewers during the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

import msgspec

from teho.model.device import Device, GpuState, ProcessType
from teho.model.missing import Missing
from teho.model.run import Node
from teho.model.stack import Frame, State
from teho.model.summary import Figure

__all__ = [
    "LATE_S",
    "NOT_RECORDED",
    "SILENT_S",
    "GpuNow",
    "Hello",
    "Lease",
    "LineNow",
    "LiveSample",
    "NodeNow",
    "ProcessNow",
    "Way",
    "file_period_s",
]

Way = Literal["connection", "file", "recording"]
"""How a sample came: over a connection, in the file `now/NODE.json`, or as rows of the recording.
"""
SILENT_S = 12.0
"""If a node with a connection sends nothing for longer, its values are not shown."""
LATE_S = 24.0
"""The same for files and rows: rows are written at least every 10 s, a viewer reads them every
12 s, and a shared file system may need some time."""
_GRID_S = 0.05
"""Times of rows are rounded."""
NOT_RECORDED = "has no recorder yet, or no access to this recording"
"""Why a node of the job is not in the recording. A viewer can see no difference."""
_FILES_PER_S, _FILES_PER_S_LARGE = 20.0, 12.0
"""Most files with samples that all nodes together replace in a second: each replacement needs two
operations of the file system's metadata server. In a very large job, most of these samples are old
anyway."""


def file_period_s(node_count: int) -> float:
    """Return how often a node replaces its file, if it cannot reach a viewer."""
    period_s = node_count / _FILES_PER_S
    return period_s if period_s <= SILENT_S else node_count / _FILES_PER_S_LARGE


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a viewer that watches a run. Recorders send samples while it is renewed."""

    number: int
    """Counts the renewals. A lease whose number stays the same has expired."""
    addresses: tuple[str, ...] = ()
    """Where the viewer listens, `HOST:PORT`; empty: it only reads files."""
    token: str = ""
    """A recorder sends it first: only the user can read this file."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first line that a recorder sends to a viewer."""

    token: str
    """From the lease."""
    node: str
    """All samples of the connection are of this node."""


class LineNow(msgspec.Struct, frozen=True, kw_only=True):
    """Where the main thread of a Python process was at its newest stack sample."""

    frames: tuple[Frame, ...]
    """The innermost function, and the innermost line of the program. Only one frame if they are
    the same, or if no file of the program is on the stack. Empty while Python begins or ends."""
    state: State
    stayed_s: float
    """Time since the thread came to this line of the program."""


class ProcessNow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One process of the program."""

    pid: int
    parent: int
    """Process id of its parent."""
    command: str
    """Command line, secrets masked; its end may be cut off."""
    cpu_percent: Union[float, None] = None
    """CPU time since the sample before, as a share of one core; None in the first sample."""
    resident_bytes: int
    threads: int
    rank: Union[int, None] = None
    """Of the task that it belongs to; None: not known, or there is only one task."""
    gpu_memory_bytes: dict[str, Union[float, None]] = {}
    """Id of each GPU that it uses -> memory there; None: the driver does not report it."""
    gpu_types: dict[str, tuple[ProcessType, ...]] = {}
    """Id of each GPU that it uses -> how it uses this GPU, as far as the driver reports it."""
    owner: Union[int, Literal["own", "other"], None] = None
    """The kernel's id of the user who owns it. `own`: the user who owns the recording. `other`:
    another user, whose id is not sent. None: not known."""
    line: Union[LineNow, None] = None
    """None: it is not a Python process that is sampled, or one of too many."""

    @property
    def gpu_total_bytes(self) -> float | None:
        """Its memory on all GPUs; None if it uses none, or the driver does not report it."""
        amounts = list(self.gpu_memory_bytes.values())
        given = [amount for amount in amounts if amount is not None]
        return sum(given) if given and len(given) == len(amounts) else None


class LiveSample(msgspec.Struct, frozen=True, kw_only=True):
    """One sample of all devices of a node."""

    node: str
    elapsed_s: float
    """Seconds after the start of the program."""
    rows: Sequence[Mapping[str, Any]]
    """A row for each device with the columns of a recording, without those that all rows share:
    `kind`, `device` and the metrics. A metric without a value is not there."""
    processes: list[ProcessNow] = []
    """The processes with the most CPU time first; empty if the sample is from the recording."""
    gpus: dict[str, GpuState] = {}
    """State of each GPU by its id; empty if the sample is from the recording."""

    def is_after(self, end_s: float, period_s: float) -> bool:
        """Return whether it was taken after the end of the program, which it does not describe.

        Args:
            end_s: end of the program, in seconds after its start by the clock of the node.
            period_s: time between two samples. A row of several samples is mostly from before.
        """
        spans_s = [row.get("span_s") or 0.0 for row in self.rows]
        return self.elapsed_s >= end_s - _GRID_S and max(spans_s, default=0.0) <= 1.5 * period_s


class GpuNow(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at its newest sample."""

    node: str
    device: Device
    position: int
    """Number of this GPU among the job's GPUs on the node."""
    values: Mapping[str, Figure]
    """Metric -> its value. A counter is its increase per second since the sample before."""
    p_state: Union[int, Missing]
    """The driver's performance state, from 0 (fastest) to 15."""
    errors: Mapping[str, float] = {}
    """Metric of errors -> their number since the start of the recording. A metric without a value
    is not there."""
    unlisted: Mapping[ProcessType, Missing] = {}
    """Types of processes that cannot be listed, and why."""


class NodeNow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at its newest sample."""

    node: Node
    elapsed_s: Union[float, None] = None
    """Time of the sample after the start of the run; None: there is no sample."""
    age_s: Union[float, None] = None
    """Time since the sample; if the run has ended, the time from the sample to this end."""
    way: Union[Way, None] = None
    """How it came."""
    silent_after_s: float = SILENT_S
    """If the sample is older, its values are not shown."""
    is_recorded: bool = True
    """Whether the recording has this node; if not, only the scheduler names it."""
    has_ended: bool = False
    """Whether the run has ended: its last values stay, and do not grow older."""
    values: Mapping[str, Figure] = {}
    """As for a GPU."""
    cores_percent: tuple[float, ...] = ()
    """Busy share of each of the job's cores."""
    gpus: tuple[GpuNow, ...] = ()
    has_fault: bool = False
    """Whether heat slows one of its GPUs, or a GPU had an uncorrected memory error or an Xid
    error."""
    processes: tuple[ProcessNow, ...] = ()
    """Those with the most CPU time first; empty if they are not known."""

    @property
    def is_silent(self) -> bool:
        """Whether its values are too old to be shown."""
        return self.age_s is None or self.age_s > self.silent_after_s
