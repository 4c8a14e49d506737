"""Reads SQL statements: their tables, and the conditions for which an index helps.

Only plain statements are read: one statement, without other queries in it and without `OR`. Of all
others, this module says that it does not understand them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from teho.source.database.computed import Computed, computed
from teho.source.database.tokens import (
    CLAUSES,
    JOINS,
    NOT_READ,
    Token,
    closing,
    deeper,
    parts_of,
    tokens,
)
from teho.source.texts import UNKNOWN

__all__ = [
    "Column",
    "Condition",
    "Query",
    "read_query",
    "read_subqueries",
]

_EQUAL = frozenset(("=", "==", "<=>"))
_RANGE = frozenset(("<", "<=", ">", ">="))
_OF_VALUES = frozenset((*"+-*/%(),", "||"))
"""Signs of an expression that has no column."""
_GIVEN = frozenset(("?", ":", "@", "$", "%", UNKNOWN))
"""Begin of a value that the program gives."""

Column = tuple[str, str]
"""Name of a table in the query, or empty if the query does not give it; and name of the column."""


class Condition(NamedTuple):
    """A condition of a query, such as `column = ?`. All of its conditions are true for a row."""

    column: Column | None
    """The column by which an index finds the rows; None: an index does not help."""
    other: Column | None
    """The column on the other side; None: there is a value."""
    sign: str
    """`=`, also for `IN`; `<`, `<=`, `>`, `>=` or `BETWEEN`."""
    is_given: bool
    """Whether the program gives the value."""
    mentions: tuple[Column, ...]
    """All of its columns."""
    computed: Computed | None = None
    """The expression of `column` that it compares: an index of the column does not help."""


class Query(NamedTuple):
    """A statement that searches rows of tables."""

    tables: dict[str, str]
    """Alias, or the name if it has none -> name of the table."""
    conditions: tuple[Condition, ...]
    first_by: Column | None
    """The column by which the rows are sorted, if only the first rows are wanted (`LIMIT`)."""


class _NotReadError(Exception):
    """A statement is not understood."""


def read_query(text: str) -> Query | None:
    """Return the tables and the conditions of a statement; None if they are not clear."""
    return _read(_statement(text))


def read_subqueries(text: str) -> Iterator[Query]:
    """Yield the queries in a statement that the database runs for each row of its other tables.

    A column of these tables is a value for such a query: `(SELECT … WHERE inner.a = outer.a)`.
    """
    given = _statement(text)
    for place, one in enumerate(given[1:], 1):
        if not one.is_word("SELECT") or given[place - 1].text != "(":
            continue
        end = closing(given, place - 1)
        if end is None:
            continue
        inner, rest = (
            given[place:end],
            [*given[: place - 1], Token("value", "?"), *given[end + 1 :]],
        )
        query, outer = _read(inner), _outer_tables(rest)
        if query is not None:
            conditions = [_with_outer(one, outer - query.tables.keys()) for one in query.conditions]
            if conditions != list(query.conditions):
                yield query._replace(conditions=tuple(conditions))


def _statement(text: str) -> list[Token]:
    given = tokens(text)
    while given and given[-1].text == ";":
        given.pop()
    return given


def _outer_tables(given: list[Token]) -> set[str]:
    """Return the names of the tables in a statement; empty if they are not clear."""
    try:
        return set(_tables(_clauses(given)["FROM"])[0])
    except _NotReadError:
        return set()


def _with_outer(condition: Condition, outer: set[str]) -> Condition:
    """Return a condition with an equal column of the outer query as a value."""
    for one, other in ((condition.column, condition.other), (condition.other, condition.column)):
        if one and other and condition.sign == "=" and one[0] not in outer and other[0] in outer:
            return Condition(one, None, "=", is_given=True, mentions=(one,))
    return condition


def _read(given: list[Token]) -> Query | None:
    if not given or any(one.text == ";" or one.is_word(*NOT_READ) for one in given[1:]):
        return None
    try:
        clauses = _clauses(given)
        names, joined = _tables(clauses["FROM"])
        where = clauses.get("WHERE", [])
        conditions = [one for part in (*joined, where) for one in _conditions(part)]
    except _NotReadError:
        return None
    first_by = _column(clauses.get("ORDER", [])[1:])[0] if "LIMIT" in clauses else None
    return Query(names, tuple(conditions), first_by)


def _clauses(given: list[Token]) -> dict[str, list[Token]]:
    """Return the clauses of `SELECT`, `UPDATE` or `DELETE`; `FROM` has the tables."""
    parts: dict[str, list[Token]] = {"": []}
    clause, depth = "", 0
    for one in given[1:]:
        depth += deeper(one)
        if not depth and one.is_word(*CLAUSES) and one.text.upper() not in parts:
            clause = one.text.upper()
            parts[clause] = []
        else:
            parts[clause].append(one)
    if given[0].is_word("UPDATE") and "FROM" not in parts:
        parts["FROM"] = parts[""]
    elif not (given[0].is_word("SELECT", "DELETE") and "FROM" in parts):
        raise _NotReadError
    return parts


def _tables(given: list[Token]) -> tuple[dict[str, str], list[list[Token]]]:
    """Return the tables by their aliases, and the conditions of the joins."""
    tables: dict[str, str] = {}
    joined: list[list[Token]] = []
    for part in parts_of(given, ",", "JOIN"):
        while part and part[-1].is_word(*JOINS):  # those of the next `JOIN`
            part.pop()
        reference, *conditions = parts_of(part, "ON")
        while len(reference) > 2 and reference[1].text == ".":  # the schema
            reference = reference[2:]
        words = [one for one in reference if not one.is_word("AS")]
        is_plain = 1 <= len(words) <= 2 and all(one.is_name for one in words)
        if not is_plain or len(conditions) > 1 or words[-1].name in tables:
            raise _NotReadError
        tables[words[-1].name] = words[0].name
        joined += conditions
    return tables, joined


def _conditions(given: list[Token]) -> list[Condition]:
    """Return the conditions between the words `AND`."""
    found: list[Condition] = []
    parts = parts_of(given, "AND")
    for part in parts:
        if part and part[0].text == "(" and closing(part, 0) == len(part) - 1:
            found += _conditions(part[1:-1])
            continue
        if any(one.is_word("BETWEEN") for one in part):
            part += [Token("sign", ","), *next(parts, [])]
        if part:
            found.append(_condition(part))
    return found


def _condition(given: list[Token]) -> Condition:
    left, rest = _column(given)
    is_given = any(_is_given(one) for one in given)
    if left and rest and rest[0].is_word("BETWEEN", "IN") and _is_value(rest[1:]):
        sign = "BETWEEN" if rest[0].is_word("BETWEEN") else "="
        return Condition(left, None, sign, is_given, (left,))
    for place, one in enumerate(given):
        if one.text in _EQUAL or one.text in _RANGE:
            found = _compared(given[:place], one.text, given[place + 1 :], is_given=is_given)
            if found is not None:
                return found
    if found := _of_expression(given, is_given=is_given):
        return found
    if any(one.text == UNKNOWN for one in given):
        raise _NotReadError  # it may be a column
    columns = [
        column
        for place in range(len(given))
        if not (place and given[place - 1].text == ".") and (column := _column(given[place:])[0])
    ]
    return Condition(None, None, "", is_given, tuple(columns))


def _compared(
    left: list[Token], sign: str, right: list[Token], *, is_given: bool
) -> Condition | None:
    """Return a comparison; None: a side is neither a column nor a value."""
    if sign in _EQUAL:
        sign = "="
    one, other = (column if not rest else None for column, rest in (_column(left), _column(right)))
    if one and other:
        return Condition(one, other, sign, is_given, (one, other))
    if one and _is_value(right):
        return Condition(one, None, sign, is_given, (one,))
    if other and _is_value(left):
        turned = {"<": ">", ">": "<"}.get(sign[0], "=")
        return Condition(other, None, turned, is_given, (other,))
    return None


def _of_expression(given: list[Token], *, is_given: bool) -> Condition | None:
    """Return a condition such as `date(column) = ?`; None: an index would not help."""
    depth = 0
    for place, one in enumerate(given):
        depth += deeper(one)
        if depth:
            continue
        left, right = given[:place], given[place + 1 :]
        is_equal = one.text in _EQUAL
        if is_equal and not _is_value(right):
            left, right = right, left
        if (is_equal or one.is_word("BETWEEN", "IN")) and _is_value(right):
            found = computed(left)
            if found is None:
                return None
            column = found.table, found.column
            sign = "BETWEEN" if one.is_word("BETWEEN") else "="
            return Condition(column, None, sign, is_given, (column,), found)
    return None


def _column(given: list[Token]) -> tuple[Column | None, list[Token]]:
    """Return the column at the begin of some tokens, and the tokens after it."""
    if not given or not given[0].is_name:
        return None, given
    if len(given) > 2 and given[1].text == "." and given[2].is_name:
        found, rest = (given[0].name, given[2].name), given[3:]
    else:
        found, rest = ("", given[0].name), given[1:]
    return (None, given) if rest and rest[0].text in ("(", ".") else (found, rest)


def _is_value(given: list[Token]) -> bool:
    """Return whether an expression has no column: it has only values, and functions of them."""
    for one, after in zip(given, [*given[1:], None], strict=True):
        is_function = one.is_name and after is not None and after.text == "("
        if not (one.kind == "value" or is_function or one.text in _OF_VALUES):
            return False
    return bool(given)


def _is_given(one: Token) -> bool:
    """Return whether a token is a value that the program gives, such as `?` or `'{name}'`."""
    return one.kind == "value" and (one.text[0] in _GIVEN or UNKNOWN in one.text)
