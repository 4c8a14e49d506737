"""Finds queries of a database that read a whole table, from the program's source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from teho.model.in_source import ColumnFilter, MissingIndex
from teho.model.stack import Frame, is_library
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.database.sql import read_query, read_subqueries
from teho.source.database.tables import Tables
from teho.source.database.unindexed import find_unindexed
from teho.source.parsed import root_name
from teho.source.program import Program
from teho.source.stack import Level, argument, levels_of
from teho.source.texts import made_text

__all__ = ["Sent", "find_column_filter", "find_missing_index", "sent_queries"]

_MANY = "executemany"
_METHODS = frozenset(
    (
        *("execute", _MANY, "query", "sql", "fetch", "fetchrow", "fetchval", "read_sql"),
        *("read_sql_query", "read_database"),
    )
)
_ON_COLUMN = lazy_pattern(
    r"""(?isx) \bwhere\b .*?
    (?P<call> \b(?: substr(?:ing)? | left | right | date | time | datetime | strftime | julianday
        | lower | upper | l?r?trim | cast | abs | round | year | month | day | date_trunc | to_char
        | coalesce | ifnull | length | replace | json_extract )
      \s* \( \s* (?!\?|:|%|') [\w."]+ [^()]* \) )
    \s* (?: =|<|>|!=|\bi?like\b|\bbetween\b|\bin\b )"""
)
"""A condition that calls a function on a column."""
_LONGEST = 60
_LEAST_QUERIES = 10
"""An index has to be worth its making: a loop with fewer queries reads the table as often."""


class Sent(NamedTuple):
    """A query that a program was sending."""

    text: str
    level: int
    """The function that has the text, as the number of its level."""
    is_many: bool
    """Whether one call runs it for many rows."""
    call: ast.Call
    """The call that sends it, in the innermost function of the program."""
    node: ast.expr
    """The expression that makes the text."""


def find_column_filter(frames: Sequence[Frame], program: Program) -> ColumnFilter | None:
    """Return the condition of the query on a stack that calls a function on a column.

    A database can use an index only for the column itself. None: there is no such condition, or
    the text of the query is not known.

    Args:
        frames: the stack, innermost frame first.
        program: the files of the program.
    """
    levels = levels_of(frames, program) or levels_of(_innermost(frames), program)
    for sent in sent_queries(levels):
        if found := _ON_COLUMN.search(sent.text):
            text = " ".join(found["call"].split())
            return ColumnFilter(frame=levels[sent.level].frame, text=text[:_LONGEST])
    return None


def find_missing_index(
    frames: Sequence[Frame], program: Program, tables: Callable[[], Tables]
) -> MissingIndex | None:
    """Return the table that a query on a stack reads again and again, for want of an index.

    The query is in a loop, or it is inside another query, which runs it for each of its rows. None:
    there is no such query, there is an index, or this is not certain.

    Args:
        frames: the stack, innermost frame first.
        program: the files of the program.
        tables: returns the tables of the program; called only if it is needed.
    """
    levels = levels_of(frames, program)
    every = list(sent_queries(levels))
    if len(every) != 1:
        return None
    (sent,) = every
    line = levels[sent.level].frame
    loop = line if sent.is_many else _loop(levels)
    query = read_query(sent.text) if loop is not None else None
    queries = [query] if query is not None else list(read_subqueries(sent.text))
    for one in queries:
        found = find_unindexed(one, tables())
        if found is not None:
            return MissingIndex(
                frame=line,
                loop=loop if query is not None and loop is not None else line,
                table=found.name,
                columns=found.columns,
                made=found.made,
                is_inner=query is None,
            )
    return None


def _innermost(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Return the frames up to the innermost function of the program."""
    own = (place for place, frame in enumerate(frames) if not is_library(frame.file))
    return frames[: next(own, -1) + 1]


def _loop(levels: Sequence[Level]) -> Frame | None:
    """Return the innermost loop of many iterations around a stack."""
    for level in reversed(levels):
        for loop in reversed(level.loops()):
            if may_iterate(loop, level.function, _LEAST_QUERIES):
                text = level.file.line_text(loop.line).rstrip(":")
                return Frame(level.frame.file, level.frame.function, loop.line, text)
        if level.is_called_again:
            loop = level.as_loop()
            text = level.file.line_text(loop.line).rstrip(":")
            return Frame(level.frame.file, level.frame.function, loop.line, text)
    return None


def sent_queries(levels: Sequence[Level]) -> Iterator[Sent]:
    """Yield the queries that the innermost function of the program may be sending."""
    for call in _queries(levels[-1]) if levels else ():
        number, text = len(levels) - 1, call.args[0]
        while isinstance(text, ast.Name) and text.id not in levels[number].function.assigned:
            given = argument(levels, number, text.id)
            if given is None:
                break
            number, text = number - 1, given
        is_many = isinstance(call.func, ast.Attribute) and call.func.attr == _MANY
        yield Sent(made_text(text, levels[number].function), number, is_many, call, text)


def _queries(level: Level) -> list[ast.Call]:
    """Return the calls that send queries in the line, or whose rows the line gets."""
    node, line = level.node, level.frame.line
    whole = [node] if node is not None else [one for one in level.function.nodes if _has(one, line)]
    parts = {id(part): part for one in whole for part in ast.walk(one)}
    found = [part for part in parts.values() if _is_query(part)]
    if found:
        return found
    names = {part.id for part in parts.values() if isinstance(part, ast.Name)}
    earlier: dict[str, ast.Call] = {}
    statements = [one for one in level.function.nodes if isinstance(one, (ast.Assign, ast.Expr))]
    for one in sorted(statements, key=lambda one: one.lineno):
        call = one.value
        if one.lineno >= line or not _is_query(call):
            continue
        cursor = one.targets[0] if isinstance(one, ast.Assign) else call.func
        if root_name(cursor) in names:
            earlier[root_name(cursor)] = call
    return list(earlier.values())


def _has(node: ast.AST, line: int) -> bool:
    return isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)


def _is_query(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else root_name(node.func)
    return name in _METHODS
