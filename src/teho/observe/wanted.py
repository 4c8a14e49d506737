"""What a user wants to be recorded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from teho.config.settings import Settings

__all__ = ["Wanted"]


class Wanted(NamedTuple):
    """What is to be recorded, and how."""

    settings: Settings
    command: tuple[str, ...]
    """As typed."""
    name: str
    """What the user calls the run; may be empty."""
    tags: dict[str, str]
    period_s: float
    """Time between two samples."""
    spool: str = ""
    """Folder in which the probes of the program write; empty: none are let in."""

    @property
    def home(self) -> Path:
        """The directory of all recordings.

        Raises:
            InputError: there is none.
        """
        return self.settings.home_directory
