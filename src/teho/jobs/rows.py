"""Rows of a log below the names of their columns, between other lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from teho.jobs.log import Log

__all__ = ["read_rows"]

Piece = TypeVar("Piece")


def read_rows(
    pieces: Iterable[Piece],
    log: Log,
    *,
    names_of: Callable[[str], list[str]],
    add: Callable[[Piece, list[str], float | None], bool],
    line_of: Callable[[Piece], str] = str,
) -> list[str]:
    """Read the pieces of a file, and return the last names of columns.

    A line with a time, such as the output of `date`, is the time of the rows below it. Other lines
    are counted as skipped.

    Args:
        pieces: lines, or answers in JSON.
        log: gets the times and the count.
        names_of: returns the names of the columns in a line; empty if it is another line.
        add: adds a piece to the log, given the names and the time. Returns False if it is another
            line.
        line_of: returns the text of a piece.
    """
    names: list[str] = []
    since: float | None = None
    for piece in pieces:
        line = line_of(piece)
        if found := names_of(line):
            names = found
        elif add(piece, names, since):
            continue
        elif (at_s := log.time_above(line)) is not None:
            since = at_s
        else:
            log.skipped_lines += 1
    return names
