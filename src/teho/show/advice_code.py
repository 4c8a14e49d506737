"""Code in an advice: several statements become lines that can be copied."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Union

from teho.patterns import lazy_pattern

__all__ = ["advice_parts"]

_PIECES = lazy_pattern(r"`[^`]+`(?:; `[^`]+`)*")
"""Code in backquotes; statements that belong together have `; ` between them."""


@lru_cache(512)
def advice_parts(action: str) -> tuple[Union[str, tuple[str, ...]], ...]:
    """Cut an advice into running text and blocks of code; a block is a tuple of lines.

    Only several statements are a block. One expression or one short statement stays in the text.
    """
    return tuple(_parts(action))


def _parts(action: str) -> Iterator[str | tuple[str, ...]]:
    at = 0
    for found in _PIECES.finditer(action):
        lines = tuple(line for code in found[0][1:-1].split("`; `") for line in _lines(code))
        if len(lines) < 2:
            continue
        before = action[at : found.start()].strip()
        if before:
            yield before if before.endswith(":") else f"{before}:"
        yield lines
        # The end of the block takes the place of the full stop or the comma behind it.
        at = found.end() + len(action[found.end() :]) - len(action[found.end() :].lstrip(".,; "))
    if rest := action[at:].strip():
        yield rest


def _lines(code: str) -> list[str]:
    """Return the lines of a piece of code: each statement, and the body of a function."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [code]  # a command of the shell, a part of a statement, or no text at all
    if not any(hasattr(one, "body") for one in body) and len(body) < 2:
        return [code]
    return [line for one in body for line in _lines_of(one, code)]


def _lines_of(statement: ast.stmt, code: str) -> list[str]:
    if hasattr(statement, "body"):
        return ast.unparse(statement).splitlines()
    return [ast.get_source_segment(code, statement) or ast.unparse(statement)]
