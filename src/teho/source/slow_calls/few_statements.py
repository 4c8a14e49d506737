"""Finds calls of a database that execute only a few statements in the whole run.

The advice about many statements, such as to ask for many rows at once, does not fit such a call. An
example is a loop over four summaries, of which each reads a whole table once.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import length
from teho.source.parsed import Loop
from teho.source.stack import Level

__all__ = ["find_few_statements"]

_MOST = 20
"""With more statements, the advice about many statements may fit."""
_FETCHES = frozenset(("fetchone", "fetchall", "fetchmany", "fetchdf", "df", "arrow"))


def find_few_statements(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the call that executes a statement, if the source says that it is executed seldom.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    call = level.node
    if _method(call) in _FETCHES and isinstance(call, ast.Call):
        call = getattr(call.func, "value", None)
    if not isinstance(call, ast.Call) or _method(call) not in ("execute", "sql"):
        return None
    if len(call.args) != 1 or call.keywords:
        return None  # with parameters, it may be executed for each of many rows
    count = 1
    for one in levels:
        if one.is_called_again or one.caller:
            return None
        for loop in one.loops():
            times = _times(loop, one)
            if times is None:
                return None
            count *= times
    frame = level.frame
    if count > _MOST:
        return None
    at = Frame(frame.file, frame.function, frame.line, level.file.text_of(call))
    return CostlyOption(name="statements_few", at=at, lines=(frame,))


def _method(node: ast.AST | None) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else ""


def _times(loop: Loop, level: Level) -> int | None:
    """Return the number of iterations of a loop; None: the source does not say it."""
    return None if loop.iterable is None else length(loop.iterable, level.function)
