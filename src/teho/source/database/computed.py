"""Expressions of a query for which SQLite can have an index, such as `date(taken_at)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.database.tokens import Token, closing

__all__ = ["Computed", "computed"]

_FUNCTIONS = frozenset(
    (
        *("date", "time", "datetime", "julianday", "strftime", "unixepoch"),
        *("lower", "upper", "trim", "ltrim", "rtrim", "substr", "substring", "replace"),
        *("cast", "abs", "round", "coalesce", "ifnull"),
    )
)
"""Functions that always have the same result for the same row, and many different results."""
_OF_NOW = frozenset(("now", "localtime", "utc"))
"""Values with which the result also depends on the time or on the machine."""
_SIGNS = frozenset("(),+-*/")
_MANY_DAYS = lazy_pattern(r"%[sJ]|%Y.*%[mjWdF]|%F")
"""Formats of `strftime` that have many different results: not `%m`, which has twelve."""


class Computed(NamedTuple):
    """An expression of one column."""

    table: str
    """Its table in the query; empty if the query does not give it."""
    column: str
    text: str
    """The expression, without the name of the table."""
    functions: frozenset[str]


def computed(given: Sequence[Token]) -> Computed | None:
    """Return the expression that some tokens are; None: an index for it may not be possible."""
    if len(given) < 3 or given[1].text != "(" or closing(given, 1) != len(given) - 1:
        return None
    words: list[str] = []
    columns: set[tuple[str, str]] = set()
    functions: set[str] = set()
    table = ""
    for one, after in zip(given, [*given[1:], Token("sign", "")], strict=True):
        if one.is_word("AS"):
            words.append(" AS ")
        elif one.is_name and after.text == "(":
            functions.add(one.name)
            words.append(one.text)
        elif one.is_name and after.text == ".":
            table = one.name
        elif one.is_name and words and words[-1] == " AS ":
            words.append(one.text)
        elif one.is_name:
            columns.add((table, one.name))
            words.append(one.text)
            table = ""
        elif one.text == ",":
            words.append(", ")
        elif one.text in _SIGNS or _is_constant(one):
            words.append(one.text)
        elif one.text != ".":
            return None
    if len(columns) != 1 or not functions <= _FUNCTIONS:
        return None
    if "strftime" in functions and not _MANY_DAYS.search("".join(words)):
        return None
    ((table, column),) = columns
    return Computed(table, column, "".join(words), frozenset(functions))


def _is_constant(one: Token) -> bool:
    """Return whether a token is a value that is in the query itself."""
    is_plain = one.kind == "value" and (one.text[0] == "'" or one.text[0].isdigit())
    return is_plain and "\0" not in one.text and one.text.strip("'").lower() not in _OF_NOW
