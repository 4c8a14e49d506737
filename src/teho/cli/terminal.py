"""What a command knows of the terminal that it writes to."""

from __future__ import annotations

import os
import shutil
from typing import IO

__all__ = ["wants_color", "width"]


def width() -> int:
    """Return the columns to fill: the terminal's, within what reads well; 80 in a pipe."""
    return max(40, min(120, shutil.get_terminal_size((80, 24)).columns))


def wants_color(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that takes escape codes for colour."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
