"""Finds queries that read a table page by page with `OFFSET`.

For each page, the database reads all rows before the page again. The text of the query shows the
clause, and the source shows that a loop sends the query with an offset that grows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.database.tokens import Token, tokens
from teho.source.parsed import Loop, dotted_name
from teho.source.queries import Sent, sent_queries
from teho.source.stack import Level, argument
from teho.source.texts import UNKNOWN, made_text

__all__ = ["find_paging"]

_LEAST_PAGES = 10
_DEEPEST = 6
_COUNTS = frozenset(("range", "trange", "count", "itertools.count", "enumerate"))
"""Functions whose items grow."""
_ROWS = lazy_pattern(r"^len\(|\b(rowcount|shape\[0\]|num_rows|height)$")
"""Step of a program that adds the number of rows that it got."""
_PANDAS = frozenset(("read_sql", "read_sql_query"))


class _Clause(NamedTuple):
    """`LIMIT 100 OFFSET ?`: the places of its values among the tokens of the query."""

    begin: int
    end: int
    limit: int
    offset: int


def find_paging(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the clause of a query on a stack that reads a table page by page.

    None: there is no such query, or the offset may not grow in a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    every = list(sent_queries(levels))
    if len(every) != 1 or every[0].is_many:
        return None
    (sent,) = every
    given = tokens(sent.text)
    clause = _clause(given)
    offset = _value(levels, sent, given, clause.offset) if clause is not None else None
    if clause is None or offset is None:
        return None
    step, size = _step(levels, *offset), _size(levels, sent, given, clause.limit)
    # Pages follow each other; a query for one row, or for every hundredth row, has other reasons.
    if step is None or size is None or size[1] == "1":
        return None
    if step != size[1] and not _ROWS.search(step):
        return None
    method = sent.call.func.attr if isinstance(sent.call.func, ast.Attribute) else ""
    key = _key(given, clause.begin)
    name = "pages_by_offset"
    words = {"size": size[0], "query": ast.unparse(sent.call.func)}
    if method in _PANDAS:
        name = "pages_of_pandas"
    elif method == "execute" and not key:
        name = "pages_without_order"
    elif method == "execute":
        words |= key
    elif key:
        name, words = "pages_by_key", key
    else:
        return None
    line = levels[-1].frame
    text = " ".join(one.text for one in given[clause.begin : clause.end])
    at = Frame(line.file, line.function, sent.call.lineno, text.replace(UNKNOWN, "…"))
    return CostlyOption(name=name, at=at, lines=(line,), words=words)


def _clause(given: Sequence[Token]) -> _Clause | None:
    """Return the clause at the end of a query that selects a page; None: there is none."""
    depth = 0
    begin: int | None = None
    limit: int | None = None
    offset: int | None = None
    for place, one in enumerate(given):
        depth += {"(": 1, ")": -1}.get(one.text, 0)
        if depth or not one.is_word("LIMIT", "OFFSET", "FETCH"):
            continue
        begin = place if begin is None else begin
        following = place + 1
        if any(each.is_word("NEXT", "FIRST") for each in given[following : following + 1]):
            following += 1
        if not any(each.kind == "value" for each in given[following : following + 1]):
            return None
        has_comma = any(each.text == "," for each in given[following + 1 : following + 2])
        if one.is_word("OFFSET"):
            offset = following
        elif one.is_word("LIMIT") and has_comma:  # `LIMIT offset, count`
            offset, limit = following, following + 2
        else:
            limit = following
    if begin is None or limit is None or offset is None or limit >= len(given):
        return None
    return _Clause(begin, len(given) - (given[-1].text == ";"), limit, offset)


def _key(given: Sequence[Token], end: int) -> dict[str, str]:
    """Return the only column of `ORDER BY`, and the sign of a condition for the next page."""
    begins = [place for place in range(end) if given[place].is_word("ORDER")]
    part = given[begins[-1] + 1 : end] if begins else ()
    if len(part) < 2 or not part[0].is_word("BY"):
        return {}
    part = part[1:]
    is_falling = part[-1].is_word("DESC")
    if part[-1].is_word("ASC", "DESC"):
        part = part[:-1]
    is_column = len(part) == 1 or (len(part) == 3 and part[1].text == ".")
    if not is_column or not part[-1].is_name:
        return {}
    return {"key": "".join(one.text for one in part), "sign": "<" if is_falling else ">"}


def _value(
    levels: Sequence[Level], sent: Sent, given: Sequence[Token], place: int
) -> tuple[ast.expr, int] | None:
    """Return the expression of a value in a query, and the number of its level."""
    text = given[place].text
    if text == UNKNOWN:
        parts = list(_unknown_parts(sent.node, levels[sent.level]))
        count = sum(one.text.count(UNKNOWN) for one in given)
        number = sum(one.text.count(UNKNOWN) for one in given[:place])
        return (parts[number], sent.level) if len(parts) == count else None
    number = len(levels) - 1
    words = {word.arg: word.value for word in sent.call.keywords if word.arg}
    arguments = [*sent.call.args[1:]]
    if text[1:].isdigit() and text[0] in "$?":
        place = int(text[1:]) - 1
    elif text in ("?", "%s"):
        place = sum(one.text == text for one in given[:place])
    else:
        name = text.strip("%()s") if text[0] == "%" else text[1:]
        return _named(name, levels[-1], arguments, words, number)
    values = words.get("params") or words.get("parameters")
    if values is None and len(arguments) == 1:
        values = arguments[0]
    if isinstance(values, ast.Name):
        values = _assigned(values.id, levels[-1]) or values
    items = values.elts if isinstance(values, (ast.Tuple, ast.List)) else arguments
    is_plain = place < len(items) and not any(isinstance(one, ast.Starred) for one in items)
    return (items[place], number) if is_plain else None


def _named(
    name: str,
    level: Level,
    arguments: Sequence[ast.expr],
    words: dict[str, ast.expr],
    number: int,
) -> tuple[ast.expr, int] | None:
    """Return the value of `:name`, which is in a dictionary or has this name as an argument."""
    values = words.get("params") or words.get("parameters")
    values = values or (arguments[0] if len(arguments) == 1 else None)
    if isinstance(values, ast.Name):
        values = _assigned(values.id, level)
    if isinstance(values, ast.Call) and dotted_name(values.func) == "dict":
        words = {word.arg: word.value for word in values.keywords if word.arg}
    elif isinstance(values, ast.Dict):
        words = {
            key.value: value
            for key, value in zip(values.keys, values.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
    return (words[name], number) if name in words else None


def _assigned(name: str, level: Level) -> ast.expr | None:
    given = level.function.assigned.get(name, [])
    return given[0].value if len(given) == 1 and given[0].loop is None else None


def _unknown_parts(node: ast.expr, level: Level) -> Iterator[ast.expr]:
    """Yield the expressions in a text that the source does not give: `f"… OFFSET {start}"`."""
    if isinstance(node, ast.Name):
        value = _assigned(node.id, level)
        if value is not None:
            yield from _unknown_parts(value, level)
    elif isinstance(node, ast.JoinedStr):
        fields = (one.value for one in node.values if isinstance(one, ast.FormattedValue))
        yield from (one for one in fields if UNKNOWN in made_text(one, level.function))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _unknown_parts(node.left, level)
        yield from _unknown_parts(node.right, level)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    elif isinstance(node, ast.Call) and node.args and not isinstance(node.func, ast.Attribute):
        yield from _unknown_parts(node.args[0], level)  # `text(f"…")`


def _size(
    levels: Sequence[Level], sent: Sent, given: Sequence[Token], place: int
) -> tuple[str, str] | None:
    """Return the number of rows of a page as the program has it, and as a number if it is known."""
    text = given[place].text
    if text.isdigit():
        return text, text
    found = _value(levels, sent, given, place)
    return (ast.unparse(found[0]), _plain(levels, *found)) if found is not None else None


def _plain(levels: Sequence[Level], value: ast.expr, number: int) -> str:
    """Return the text of a value: of a name, the text of what it refers to."""
    while isinstance(value, ast.Name):
        function = levels[number].function
        if value.id in function.params and value.id not in function.assigned:
            passed = argument(levels, number, value.id)
            if passed is None:
                break
            value, number = passed, number - 1
            continue
        text = made_text(value, function)
        return value.id if UNKNOWN in text else text
    return ast.unparse(value)


def _step(levels: Sequence[Level], value: ast.expr, number: int, depth: int = 0) -> str | None:
    """Return what each iteration of a loop around a stack adds to a value; None: not known.

    Args:
        levels: the program's functions on the stack, the outermost first.
        value: the value.
        number: the number of its level.
        depth: how many names lead to it.
    """
    level = levels[number]
    match value:
        case _ if depth > _DEEPEST:
            return None
        case ast.BinOp(op=ast.Mult()):
            for one, factor in ((value.left, value.right), (value.right, value.left)):
                if _step(levels, one, number, depth + 1) == "1":
                    return _plain(levels, factor, number)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            found = (_step(levels, one, number, depth + 1) for one in (value.left, value.right))
            return next((one for one in found if one is not None), None)
        case ast.Name() | ast.Attribute():
            name = dotted_name(value)
            step = _added(name, level) or _counted(name, level)
            if step is not None:
                return _plain(levels, step, number)
            given = level.function.assigned.get(name, [])
            if len(given) == 1 and given[0].value is not None and given[0].loop is None:
                return _step(levels, given[0].value, number, depth + 1)
            passed = argument(levels, number, name) if not given else None
            return _step(levels, passed, number - 1, depth + 1) if passed is not None else None
    return None


def _loops(level: Level) -> list[Loop]:
    """Return the loops around a level that may have enough pages."""
    return [loop for loop in level.loops() if may_iterate(loop, level.function, _LEAST_PAGES)]


def _added(name: str, level: Level) -> ast.expr | None:
    """Return what a loop adds to a name: `start += 100`, or `start = start + 100`."""
    loops = _loops(level)
    for node in level.function.nodes:
        if not any(loop.first <= getattr(node, "lineno", 0) <= loop.last for loop in loops):
            continue
        match node:
            case ast.AugAssign(target=target, op=ast.Add()) if dotted_name(target) == name:
                return node.value
            case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add(), right=step)):
                if dotted_name(target) == dotted_name(left) == name:
                    return step
    return None


def _counted(name: str, level: Level) -> ast.expr | None:
    """Return the step of a counter: `100` of `for start in range(0, rows, 100)`."""
    loops = _loops(level)
    for one in level.function.assigned.get(name, []):
        iterable = one.loop.iterable if one.loop is not None and one.loop in loops else None
        if not isinstance(iterable, ast.Call) or one.value is not iterable:
            continue
        function, arguments = dotted_name(iterable.func), iterable.args
        if function in _COUNTS:
            place = 1 if function.endswith("count") else 2
            has_step = len(arguments) > place and function != "enumerate"
            return arguments[place] if has_step else ast.Constant(1)
    return None
