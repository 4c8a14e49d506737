"""The messages that start a recorder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from teho.model.run import Run

__all__ = ["Orders", "RecordingPlan"]


class RecordingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder has to do. The supervisor sends it as one message."""

    directory: str
    """The run's."""
    node: str
    period_s: float
    started_s: float
    """Monotonic time of the program's start: `elapsed_s` 0."""
    started_at: datetime
    """The same moment in UTC."""
    supervisor_pid: int | None = None
    """None if this node has no supervisor."""
    ranks: tuple[int, ...] = ()
    """The rank of the step's task here, if this node has only one task."""
    node_count: int = 1
    """Number of nodes of the recording."""
    began_here: bool = True
    """Whether this node began the recording. All other nodes compare their clocks with it."""
    job: str = ""
    """Number of a job that is recorded as a whole: all its processes count."""
    job_variables: dict[str, str] = {}
    """Variables that only processes of this job have; empty: Slurm's, with its number."""
    mark: str | None = None
    """Identifies the processes of this recording; see `JobProcesses`."""
    helper_pids: tuple[int, ...] = ()
    """Children of the supervisor that do not belong to the program."""
    cores: tuple[int, ...] = ()
    """Logical CPUs of the allocation; empty: the recorder's."""
    used_before: dict[str, float] = {}
    """What a program that ran already had used of each counter; see `ProcessTree`."""
    spool: str = ""
    """Folder on each node in which the probes of the program write; empty: without probes."""

    @property
    def continues(self) -> bool:
        """Whether the program ran before the recording, and continues after it."""
        return bool(self.used_before)

    @property
    def run(self) -> Path:
        """The run's directory."""
        return Path(self.directory)


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The message to the recorders of a job's other nodes, the same for all."""

    plan: RecordingPlan
    """Each recorder sets its node and its start."""
    description: Run
    """For nodes that do not see the run's directory: they need a separate one."""
    home: str
    """The directory of all recordings, for such a separate directory."""
    environment: dict[str, str]
    """Variables that the scheduler sets in the job's script but not in a step."""
