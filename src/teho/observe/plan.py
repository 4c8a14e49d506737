"""What a recorder is to do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

__all__ = ["Plan"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder is to do: the supervisor sends it as one message."""

    directory: str
    """The run's."""
    node: str
    period_s: float
    started_s: float
    """Monotonic time of the program's start: `elapsed_s` 0."""
    started_at: datetime
    """The same moment in UTC."""
    supervisor_pid: int
    ranks: tuple[int, ...] = ()
    """Of the step's task here, where no other task of the step can be on this node."""
    node_count: int = 1
    """Nodes of the recording."""
    began_here: bool = True
    """Whether this node began it; the clocks of all others are held against its."""

    @property
    def run(self) -> Path:
        """The run's directory."""
        return Path(self.directory)
