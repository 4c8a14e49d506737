"""Finds the JSON values in a text that has several of them, and other lines between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from teho.patterns import lazy_pattern

__all__ = ["Piece", "line_of_piece", "pieces_of"]

_BEGIN = lazy_pattern(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_DECODER = json.JSONDecoder()


class Piece(NamedTuple):
    """One JSON value, or one line between."""

    value: Any
    """None: it is a line."""
    line: str = ""


def pieces_of(text: str) -> Iterator[Piece]:
    """Yield the JSON objects and lists that begin a line, and the other lines, in their order.

    A value that is cut off, such as the last one of a killed program, is yielded as its lines.
    """
    end = 0
    while match := _BEGIN.search(text, end):
        try:
            value, after = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            after = text.find("\n", match.end()) + 1 or len(text)
            yield from _lines(text[end:after])
        else:
            yield from _lines(text[end : match.start()])
            yield Piece(value)
        end = after
    yield from _lines(text[end:])


def line_of_piece(piece: Piece) -> str:
    """Return the line of a piece; empty if it is a value."""
    return piece.line


def _lines(text: str) -> Iterator[Piece]:
    for line in text.splitlines():
        if line.strip():
            yield Piece(None, line.strip())
