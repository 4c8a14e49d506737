"""What the user wants to record."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from teho.config.settings import Settings

__all__ = ["Wanted"]


class Wanted(NamedTuple):
    """What to record, and how."""

    settings: Settings
    command: tuple[str, ...]
    """As the user typed it."""
    name: str
    """The user's name for the run; may be empty."""
    tags: dict[str, str]
    period_s: float
    """Time between two samples."""
    spool: str = ""
    """Folder in which the probes of the program write; empty: without probes."""
    is_automatic: bool = False
    """Whether `teho always` records it, without a command of the user."""

    @property
    def home(self) -> Path:
        """The directory of all recordings.

        Raises:
            InputError: the setting is not a usable directory.
        """
        return self.settings.home_directory
