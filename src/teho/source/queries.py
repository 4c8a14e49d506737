"""Finds queries of a database that cannot use an index, from the program's source."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from teho.model.watched import ColumnFilter, Frame, is_library
from teho.source.parsed import Function
from teho.source.program import Program

__all__ = ["find_column_filter"]

_METHODS = frozenset(("execute", "executemany", "query", "sql", "read_sql", "read_sql_query"))
_ON_COLUMN = re.compile(
    r"""(?isx) \bwhere\b .*?
    (?P<call> \b(?: substr(?:ing)? | left | right | date | time | datetime | strftime | julianday
        | lower | upper | l?r?trim | cast | abs | round | year | month | day | date_trunc | to_char
        | coalesce | ifnull | length | replace | json_extract )
      \s* \( \s* (?!\?|:|%|') [\w."]+ [^()]* \) )
    \s* (?: =|<|>|!=|\bi?like\b|\bbetween\b|\bin\b )"""
)
"""A condition that calls a function on a column."""
_DEEPEST = 4
_LONGEST = 60


def find_column_filter(frames: Sequence[Frame], program: Program) -> ColumnFilter | None:
    """Return the condition of the query on a stack that calls a function on a column.

    A database can use an index only for the column itself. None: there is no such condition, or
    the text of the query is not known.

    Args:
        frames: the stack, innermost frame first.
        program: the files of the program.
    """
    own = next((frame for frame in frames if not is_library(frame.file)), None)
    file = program.file(own.file) if own is not None else None
    if own is None or file is None or not 0 < own.line <= len(file.lines):
        return None
    function = file.function_at(own.line)
    for node in ast.walk(function.node):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _METHODS
            and node.args
            and node.lineno <= own.line <= (node.end_lineno or 0)
            and (found := _ON_COLUMN.search(_text(node.args[0], function)))
        ):
            text = " ".join(found["call"].split())
            return ColumnFilter(frame=own, text=text[:_LONGEST])
    return None


def _text(node: ast.expr, function: Function, depth: int = 0) -> str:
    """Return the text of a query, as far as it is written in the program."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one, function, depth) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return "x"
    if isinstance(node, ast.BinOp):
        return _text(node.left, function, depth) + _text(node.right, function, depth)
    if isinstance(node, ast.Call) and node.args:  # such as SQLAlchemy's `text(…)`
        return _text(node.args[0], function, depth + 1)
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        outer: Function | None = function
        while outer is not None and node.id not in outer.assigned:
            outer = outer.parent
        given = outer.assigned[node.id] if outer is not None else []
        if outer is not None and len(given) == 1 and given[0].value is not None:
            return _text(given[0].value, outer, depth + 1)
    return ""
