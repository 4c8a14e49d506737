"""Finds requests that a program sends in two small parts before it reads the answer.

If a socket of TCP has not set `TCP_NODELAY`, the kernel keeps a small part back as long as the part
before it is not acknowledged (Nagle's algorithm). The other side cannot answer yet, and delays its
acknowledgement for about 40 ms. So each request waits for 40 ms. The stack shows that the program
waits for an answer. The source shows the two parts, and where the connection is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.changes import named_values, stored_or_named
from teho.source.parsed import Function, SourceFile, dotted_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, argument

__all__ = ["find_split_request"]

_READS = frozenset(("recv", "recv_into"))
_SENDS = frozenset(("send", "sendall"))
_SMALL = frozenset(("pack", "to_bytes", "encode"))
"""Methods that give a few bytes: a header, or a short text."""
_NO_DELAY = lazy_pattern(rb"NODELAY|TCP_CORK|MSG_MORE")
"""Words of a program that decides itself when the kernel sends its data."""
_BLOCKS = ("body", "orelse", "finalbody")
_DEEPEST = 3


class _Split(NamedTuple):
    """Two parts of a request."""

    earlier: tuple[ast.Call, ...]
    """All but the last one."""
    last: ast.Call
    at: Place


class _Made(NamedTuple):
    """The call that makes a connection."""

    call: ast.Call
    path: str


def find_split_request(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that sends the second part of a request; None: there is none.

    Args:
        levels: the program's functions on the stack, the outermost first; the innermost one waits
            for the answer.
        purity: the program.
    """
    names = _names_of_socket(levels)
    if not names or any(_decides(one.file) for one in levels):
        return None
    outer = min(names)
    made = _made(names[outer], levels[outer].place, purity)
    if made is None or _may_not_delay(made, purity):
        return None
    for number in sorted(names, reverse=True):
        level = levels[number]
        split = _before(level.place, level.frame.line, names[number], purity)
        if split is not None:
            return _found(levels, number, names[number], split, made, purity)
    return None


def _found(
    levels: Sequence[Level], number: int, name: str, split: _Split, made: _Made, purity: Purity
) -> CostlyOption | None:
    file = purity.program.file(split.at.path)
    if file is None:
        return None
    last = split.last
    parts = ", ".join(ast.unparse(one.args[0]) for one in (*split.earlier, last))
    link = ast.unparse(last.func.value) if isinstance(last.func, ast.Attribute) else name
    lines = [
        str(line)
        for one in split.earlier
        for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)
    ]
    return CostlyOption(
        name="request_in_two_parts",
        at=Frame(
            split.at.path, split.at.function.name or "<module>", last.lineno, file.text_of(last)
        ),
        lines=(levels[number].frame,),
        words={
            "link": link,
            "new": f'{link}.sendall(b"".join(({parts})))',
            "first": f"line{'s' * (len(lines) > 1)} {' and '.join(lines)}",
            "made": f"{made.path.rpartition('/')[2]}:{made.call.lineno}",
        },
    )


# ---- the socket ----


def _names_of_socket(levels: Sequence[Level]) -> dict[int, str]:
    """Return the name of the socket of which a stack reads, by level; empty if it reads of none."""
    call = levels[-1].node if levels else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return {}
    name = dotted_name(call.func.value)
    if call.func.attr not in _READS or not name:
        return {}
    number = len(levels) - 1
    found = {number: name}
    while number:
        before = levels[number - 1].node
        if name.startswith("self."):
            method = before.func if isinstance(before, ast.Call) else None
            is_own = isinstance(method, ast.Attribute) and dotted_name(method.value) == "self"
            if not is_own or levels[number].caller:
                break
        elif name in levels[number].function.params:
            given = argument(levels, number, name)
            name = dotted_name(given) if given is not None else ""
            if not name:
                return {}
        else:
            break
        number -= 1
        found[number] = name
    return found


def _made(name: str, at: Place, purity: Purity, depth: int = 0) -> _Made | None:
    """Return the call that connects a socket to another one with TCP; None: it is not known."""
    values: list[tuple[ast.expr | None, Place]] = []
    if name.startswith("self.") and at.function.owner is not None:
        for function in at.function.module.every():
            if function.owner is at.function.owner:
                place = Place(at.path, function)
                values += [
                    (value, place)
                    for node in function.nodes
                    for target, value in named_values(node)
                    if dotted_name(target) == name and not _is_none(value)
                ]
    else:
        outer: Function | None = at.function
        while outer is not None and not outer.binds(name):
            outer = outer.parent
        if outer is None or name in outer.params:
            return None
        place = Place(at.path, outer)
        values = [(one.value, place) for one in outer.assigned.get(name, [])]
        values = [(value, place) for value, place in values if value is None or not _is_none(value)]
    found = [_connection(value, place, purity, depth) for value, place in values]
    known = [one for one in found if one is not None]
    return known[0] if known and len(known) == len(found) else None


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _connection(value: ast.expr | None, at: Place, purity: Purity, depth: int) -> _Made | None:
    """Return the call that makes a connection, if a value is one."""
    if isinstance(value, ast.Name) and depth < _DEEPEST:
        return _made(value.id, at, purity, depth + 1)
    if not isinstance(value, ast.Call) or depth > _DEEPEST:
        return None
    called = purity.program.called(value, at)
    if called == "socket.create_connection":
        return _Made(value, at.path)
    if called == "socket.socket":
        family = ast.unparse(value.args[0]) if value.args else "AF_INET"
        kind = ast.unparse(value.args[1]) if len(value.args) > 1 else "SOCK_STREAM"
        is_plain = not value.keywords and family.endswith(("AF_INET", "AF_INET6"))
        return _Made(value, at.path) if is_plain and kind.endswith("SOCK_STREAM") else None
    if not isinstance(called, Place):
        return None
    returned = [
        one.value
        for one in called.function.nodes
        if isinstance(one, ast.Return) and one.value is not None
    ]
    found = [_connection(one, called, purity, depth + 1) for one in returned]
    return found[0] if len(found) == 1 else None


def _may_not_delay(made: _Made, purity: Purity) -> bool:
    """Return whether the file that makes the connection may switch the delay off."""
    file = purity.program.file(made.path)
    return file is None or _decides(file)


def _decides(file: SourceFile) -> bool:
    return any(map(_NO_DELAY.search, file.lines))


# ---- the two parts ----


def _before(at: Place, line: int, name: str, purity: Purity) -> _Split | None:
    """Return the parts of a request that a function sends directly before a line."""
    for statements, place in _blocks_with(at.function.body, line):
        if not _mentions(statements[place], name):
            return None
        if any(_mentions(one, name) for one in statements[:place]):
            return _last_split(statements[:place], at, name, purity, 0)
        # Perhaps a loop reads until the answer is whole: then the parts are before it.
    return None


def _blocks_with(block: Sequence[ast.AST], line: int) -> Iterator[tuple[Sequence[ast.stmt], int]]:
    """Yield the blocks with a line, the innermost first, and the place of the line in each.

    Not those around a statement that sends something itself, such as a loop over requests.
    """
    statements = [one for one in block if isinstance(one, ast.stmt)]
    for place, one in enumerate(statements):
        if one.lineno <= line <= (one.end_lineno or one.lineno):
            for inner in _blocks(one):
                yield from _blocks_with(inner, line)
            if not _sends_anything(one):
                yield statements, place
            return


def _blocks(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for name in _BLOCKS:
        inner = getattr(node, name, None)
        if isinstance(inner, list):
            yield inner


def _sends_anything(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in _SENDS for one in ast.walk(node))


def _last_split(
    statements: Sequence[ast.stmt], at: Place, name: str, purity: Purity, depth: int
) -> _Split | None:
    """Return the last uses of a socket in some statements, if at least two of them send."""
    using = [place for place, one in enumerate(statements) if _mentions(one, name)]
    if not using:
        return None
    sent: list[ast.Call] = []
    begin = len(statements)
    for place in reversed(using):
        call = _sent(statements[place], name)
        if call is None:
            break
        begin = place
        sent.insert(0, call)
    if not sent:
        return _in_function(statements[using[-1]], at, name, purity, depth)
    if len(sent) == 1 or not _is_small(sent[0].args[0], at.function):
        return None
    *earlier, last = sent
    read = {one.id for call in earlier for one in _nodes(call.args) if isinstance(one, ast.Name)}
    changed = {
        dotted_name(target)
        for node in _nodes(statements[begin : using[-1]])
        for target in stored_or_named(node)
    }
    return None if read & changed else _Split(tuple(earlier), last, at)


def _nodes(parts: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for one in parts:
        yield from ast.walk(one)


def _in_function(
    statement: ast.stmt, at: Place, name: str, purity: Purity, depth: int
) -> _Split | None:
    """Return the parts that a function of the program sends at its end."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(value, ast.Call) or depth >= _DEEPEST:
        return None
    called = purity.program.called(value, at)
    if not isinstance(called, Place):
        return None
    function = called.function
    inner = name if name.startswith("self.") and function.owner is at.function.owner else ""
    if not inner:
        given = dict(zip(function.params_of_call, value.args, strict=False))
        given |= {word.arg: word.value for word in value.keywords if word.arg}
        inner = next((key for key, one in given.items() if dotted_name(one) == name), "")
    body = [one for one in function.body if isinstance(one, ast.stmt)]
    return _last_split(body, called, inner, purity, depth + 1) if inner else None


def _mentions(statement: ast.AST, name: str) -> bool:
    """Return whether a statement uses a socket, or the object that has it."""
    root, _, rest = name.partition(".")
    for node in ast.walk(statement):
        if dotted_name(node) == name:
            return True
        method = node.func if rest and isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and dotted_name(method.value) == root:
            return True  # `self.read()`
    return False


def _sent(statement: ast.stmt, name: str) -> ast.Call | None:
    """Return the call of a statement that sends something on a socket, and does nothing else."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=link, attr=method), args=[_], keywords=[]
            ) as call
        ) if method in _SENDS and dotted_name(link) == name:
            return call
    return None


def _is_small(node: ast.expr, function: Function) -> bool:
    """Return whether a part certainly has only a few bytes, such as a header."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        given = function.assigned.get(node.id, [])
        value = given[0].value if len(given) == 1 else None
        return value is not None and not isinstance(value, ast.Name) and _is_small(value, function)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    text = node.func.value
    if node.func.attr == "encode":
        return isinstance(text, (ast.Constant, ast.JoinedStr))
    return node.func.attr in _SMALL
