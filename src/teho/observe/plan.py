"""What a recorder is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """What a recorder is to do; made before the recorder's heavy imports."""

    run: Path
    node: str
    period_s: float
    environment: Mapping[str, str]
    started_s: float
    """Monotonic time of the program's start: `elapsed_s` 0."""
    started_at: datetime
    """The same moment in UTC."""
    supervisor_pid: int
