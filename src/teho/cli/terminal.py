"""The width and colours of the terminal."""

from __future__ import annotations

import os
import shutil
from typing import IO, Any

import click

__all__ = ["print_json", "wants_color", "width"]


def width() -> int:
    """Return the number of columns: the width of the terminal, from 40 to 120; 80 in a pipe."""
    return max(40, min(120, shutil.get_terminal_size((80, 24)).columns))


def wants_color(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that supports colour."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def print_json(value: Any) -> None:
    """Print structs, lists and dictionaries as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
