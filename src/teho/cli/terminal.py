"""The width and colours of the terminal."""

from __future__ import annotations

import os
import shutil
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from teho.model.document import Document
    from teho.show.text.document import Detail

__all__ = ["list_width", "print_json", "print_text", "wants_color", "width"]


def width() -> int:
    """Return the number of columns: the width of the terminal, from 40 to 120; 80 in a pipe."""
    return max(40, min(120, shutil.get_terminal_size((80, 24)).columns))


def list_width() -> int:
    """Return the number of columns for a list with a line for each row: all of the terminal's.

    In a pipe, there is room for each line.
    """
    return max(40, shutil.get_terminal_size((160, 24)).columns)


def wants_color(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that supports colour."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def print_json(value: Any) -> None:
    """Print structs, lists and dictionaries as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_text(document: Document, stream: IO[str], detail: Detail = "default") -> None:
    """Write a document as text to a stream, in colour if the terminal supports it."""
    from teho.show.text.document import render_text

    stream.write(render_text(document, width=width(), color=wants_color(stream), detail=detail))
    stream.flush()
