"""What a recorder is to do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from teho.model.run import Run

__all__ = ["Orders", "RecordingPlan"]


class RecordingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder is to do: the supervisor sends it as one message."""

    directory: str
    """The run's."""
    node: str
    period_s: float
    started_s: float
    """Monotonic time of the program's start: `elapsed_s` 0."""
    started_at: datetime
    """The same moment in UTC."""
    supervisor_pid: int | None = None
    """None if no program of this recording's own runs on this node."""
    ranks: tuple[int, ...] = ()
    """Of the step's task here, where no other task of the step can be on this node."""
    node_count: int = 1
    """Nodes of the recording."""
    began_here: bool = True
    """Whether this node began it; the clocks of all others are compared with its."""
    job: str = ""
    """Of a job that is recorded as a whole: its processes count, whoever has started them."""
    mark: str | None = None
    """By which they are told from those of another recording; see `JobProcesses`."""
    apart: tuple[int, ...] = ()
    """Children of the supervisor that are no part of the program."""
    cores: tuple[int, ...] = ()
    """Logical CPUs of the allocation; empty: those of the recorder."""
    spool: str = ""
    """Folder on each node in which the probes of the program write; empty: there are none."""

    @property
    def run(self) -> Path:
        """The run's directory."""
        return Path(self.directory)


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What the recorders of a job's nodes are told, all of them at once and alike."""

    plan: RecordingPlan
    """As far as it is the same for all; each finds out its own node, and its start."""
    description: Run
    """For nodes that do not see the run's directory: their part needs one of its own."""
    home: str
    """Where such a part is put."""
    environment: dict[str, str]
    """What the scheduler has told the job's script of the job, and does not report a step."""
