"""Finds queries of SQLite that search a text in all rows, in a loop over many texts.

No index of the column helps if the pattern begins with `%`. SQLite's full-text index FTS5 can split
texts into groups of three characters. With such an index, the same condition gives the same rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.database.tokens import Token, tokens
from teho.source.parsed import Function, Loop
from teho.source.queries import Sent, sent_queries
from teho.source.stack import Level
from teho.source.texts import UNKNOWN, made_text

__all__ = ["find_text_searches"]

_SQLITE = re.compile(rb"^\s*(import|from) (sqlite3|apsw|pysqlite3)\b")
_LEAST_TEXTS = 10
"""Making the index reads all rows once or twice."""
_NOT_READ = frozenset(("JOIN", "UNION", "EXCEPT", "INTERSECT", "WITH", "NOT"))
_ENDS = ("GROUP", "ORDER", "LIMIT", "HAVING", "WHERE")


def find_text_searches(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the condition on a stack that searches a text in all rows of a table.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    every = list(sent_queries(levels))
    found = _loop(levels)
    if len(every) != 1 or every[0].is_many or found is None:
        return None
    if not any(_SQLITE.match(line) for one in levels for line in one.file.lines):
        return None
    (sent,) = every
    condition = _condition(tokens(sent.text), sent, levels)
    table = _table(tokens(sent.text))
    if condition is None or not table:
        return None
    column, text = condition
    outer, loop = found
    line = levels[-1].frame
    return CostlyOption(
        name="texts_searched",
        at=Frame(line.file, line.function, sent.call.lineno, text),
        lines=(line,),
        words={
            "table": table,
            "column": column,
            "old": text,
            "loop": f"{outer.frame.file.rpartition('/')[2]}:{loop.line}",
        },
    )


def _loop(levels: Sequence[Level]) -> tuple[Level, Loop] | None:
    """Return the innermost loop of many iterations around a stack, and its function."""
    for level in reversed(levels):
        for loop in reversed(level.loops()):
            if may_iterate(loop, level.function, _LEAST_TEXTS):
                return level, loop
    return None


def _condition(
    given: Sequence[Token], sent: Sent, levels: Sequence[Level]
) -> tuple[str, str] | None:
    """Return the column and the text of the only condition with `LIKE`; None: there are others."""
    places = [place for place, one in enumerate(given) if one.is_word("LIKE")]
    if len(places) != 1 or any(one.is_word(*_NOT_READ, "ESCAPE", "GLOB") for one in given):
        return None
    (place,) = places
    if place < 1 or not given[place - 1].is_name or place + 1 >= len(given):
        return None
    if given[place - 2].text == ".":
        return None
    pattern = [given[place + 1]]
    rest = given[place + 2 :]
    while len(rest) > 1 and rest[0].text == "||":
        pattern += rest[:2]
        rest = rest[2:]
    if not _is_inside(pattern, sent, levels):
        return None
    text = " ".join(one.text for one in given[place - 1 : place + 1 + len(pattern)])
    return None if UNKNOWN in text else (given[place - 1].name, text)


def _is_inside(pattern: Sequence[Token], sent: Sent, levels: Sequence[Level]) -> bool:
    """Return whether a pattern begins with `%`, so that the text may be anywhere."""
    if len(pattern) > 1:
        return pattern[0].text == "'%'"
    function = levels[-1].function
    return any(text.startswith("%") for text in _given_texts(sent.call, function))


def _given_texts(call: ast.Call, function: Function) -> Iterator[str]:
    """Yield the texts that a call gives to a query."""
    for argument in call.args[1:]:
        parts = [argument]
        if isinstance(argument, (ast.Tuple, ast.List)):
            parts = argument.elts
        elif isinstance(argument, ast.Dict):
            parts = argument.values
        for part in parts:
            text = made_text(part, function)
            if UNKNOWN in text:  # it differs between the iterations
                yield text


def _table(given: Sequence[Token]) -> str:
    """Return the only table of a query; empty: there are several ones, or it is not clear."""
    begins = [place for place, one in enumerate(given) if one.is_word("FROM")]
    if len(begins) != 1 or begins[0] + 1 >= len(given):
        return ""
    name, after = given[begins[0] + 1], given[begins[0] + 2 :]
    is_alone = bool(after) and after[0].is_word(*_ENDS)
    return name.text if name.is_name and is_alone else ""
