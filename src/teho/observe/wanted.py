"""What a user wants to be recorded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["Wanted"]


class Wanted(NamedTuple):
    """What is to be recorded, and how."""

    home: Path
    """The directory of all recordings."""
    command: tuple[str, ...]
    """As typed."""
    name: str
    """What the user calls the run; may be empty."""
    tags: dict[str, str]
    period_s: float
    """Time between two samples."""
