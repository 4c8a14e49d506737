"""Finds the expression that a frame of a stack executes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.source.text import LONGEST_TEXT, one_line

__all__ = ["find_active", "text_between"]

_Position = tuple[int, int]
"""Line, from 1, and column in bytes."""


def find_active(node: ast.AST, lines: Sequence[bytes], line: int, text: str) -> ast.expr | None:
    """Return the expression that a frame executes; None if it is not clear.

    Args:
        node: the function.
        lines: all lines of its file.
        line: the frame's line.
        text: the expression's text, or the text of the whole line.
    """
    expressions = (one for one in ast.walk(node) if isinstance(one, ast.expr))
    begun = [(one, begin) for one in expressions if (begin := _begin(one))[0] == line]
    is_cut = len(text) >= LONGEST_TEXT
    for one, begin in begun:
        found = text_between(lines, begin, _end(one))
        if found == text or (is_cut and found.startswith(text)):
            return one
    if text != lines[line - 1].decode("utf-8", "replace").strip():
        return None
    calls = [one for one, _ in begun if isinstance(one, ast.Call)]
    within = {id(inner) for call in calls for inner in ast.walk(call) if inner is not call}
    outermost = [call for call in calls if id(call) not in within]
    return outermost[0] if len(outermost) == 1 else None


def text_between(lines: Sequence[bytes], begin: _Position, end: _Position) -> str:
    """Return the text of a part of a file, as one line."""
    part = list(lines[begin[0] - 1 : end[0]])
    part[-1] = part[-1][: end[1]]
    part[0] = part[0][begin[1] :]
    return one_line(part)


def _begin(node: ast.expr) -> _Position:
    """Return where an expression begins for Python.

    In a chain over several lines, an attribute and the call of a method begin at their name.
    """
    method = node.func if isinstance(node, ast.Call) else node
    if isinstance(method, ast.Attribute) and method.end_lineno not in (None, method.lineno):
        line, column = _end(method)
        return line, column - len(method.attr.encode())
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> _Position:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
