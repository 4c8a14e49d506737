"""Finds loops that open a new HTTP connection for each request to the same server.

The stack shows that the program waits for the answer of a request. The source shows that each
iteration of a loop makes the connection, and that the server is the same each time. A server that
accepts a new connection may need much longer than for the answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop, dotted_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_connection_for_each"]

_CONNECTIONS = lazy_pattern(r"http\.client\.HTTPS?Connection")
_METHODS = lazy_pattern(r"(requests|httpx)\.(get|post|put|patch|delete|head|options|request)")
"""Functions that open a connection for one request, and close it."""
_ANSWERS = frozenset(("getresponse", "request", "read", "endheaders", "send"))
_CLOSED = lazy_pattern(rb"HTTP/1\.0|connection[\"']?: *[\"']?close", re.IGNORECASE)
"""A text with which a client asks a server to close the connection after the answer."""
_WHOLE_HOST = lazy_pattern(r"https?://[^/]+/")
_LEAST_REQUESTS = 10


class _Opened(NamedTuple):
    """A connection for one request."""

    call: ast.Call
    name: str
    """Name of the connection; empty if the call also sends the request."""
    address: ast.expr
    """What has to be the same each time."""


def find_connection_for_each(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that opens a connection for each request of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first; the innermost one waits
            for the answer.
        purity: the program.
    """
    level = levels[-1]
    opened = _connection(level, purity) or _request(level, purity)
    if opened is None or any(_CLOSED.search(line) for one in levels for line in one.file.lines):
        return None
    at = next(_loops(levels, opened, purity), None)
    if at is None:
        return None
    number, loop = at
    file, frame = level.file, level.frame
    has_init = level.function.owner is not None and any(
        isinstance(one, ast.FunctionDef) and one.name == "__init__"
        for one in level.function.owner.body
    )
    is_of_object = has_init and number < len(levels) - 1 and _is_of_self(opened.address)
    close = f"{opened.name}.close()"
    closes = any(
        isinstance(one, ast.Call) and ast.unparse(one) == close for one in level.function.nodes
    )
    kind = "connection_of_object" if is_of_object else "connection_for_request"
    return CostlyOption(
        name=kind if opened.name else "request_without_session",
        at=Frame(frame.file, frame.function, opened.call.lineno, file.text_of(opened.call)),
        lines=(frame,),
        words={
            "name": opened.name,
            "close": f" and `{close}`" if closes else "",
            "owner": level.function.owner.name if level.function.owner is not None else "",
            "library": dotted_name(opened.call.func).partition(".")[0],
            "method": dotted_name(opened.call.func).rpartition(".")[2],
            "session": "Client" if "httpx" in ast.unparse(opened.call.func) else "Session",
            "loop": f"{levels[number].frame.file.rpartition('/')[2]}:{loop.line}",
        },
    )


def _connection(level: Level, purity: Purity) -> Union[_Opened, None]:
    """Return the connection whose answer a line waits for."""
    node = level.node
    methods: list[str] = []
    while isinstance(node, (ast.Call, ast.Attribute)):
        methods += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name) or _ANSWERS.isdisjoint(methods):
        return None
    given = level.function.assigned.get(node.id, [])
    made = given[0].value if len(given) == 1 and given[0].loop is None else None
    if not isinstance(made, ast.Call) or node.id in level.function.params:
        return None
    called = purity.program.called(made, level.place)
    if not isinstance(called, str) or not _CONNECTIONS.fullmatch(called) or not made.args:
        return None
    return _Opened(made, node.id, ast.Tuple(elts=made.args[:2], ctx=ast.Load()))


def _request(level: Level, purity: Purity) -> Union[_Opened, None]:
    """Return the call of `requests.get` that waits for its answer, if its server is known."""
    node = level.node
    called = purity.program.called(node, level.place) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(called, str):
        return None
    method = _METHODS.fullmatch(called)
    placed = node.args[1:] if method and method[2] == "request" else node.args
    url = placed[0] if placed else None
    host = url
    while isinstance(host, ast.BinOp):
        host = host.left
    if isinstance(host, ast.JoinedStr):
        host = host.values[0] if host.values else None
        host = host.value if isinstance(host, ast.FormattedValue) else host
    if method is None or host is url or host is None:
        return None
    if isinstance(host, ast.Constant) and not _WHOLE_HOST.match(str(host.value)):
        return None
    return _Opened(node, "", ast.Tuple(elts=[host], ctx=ast.Load()))


def _loops(levels: Sequence[Level], opened: _Opened, purity: Purity) -> Iterator[tuple[int, Loop]]:
    """Yield the loops that open a connection to the same server in each iteration."""
    inner = len(levels) - 1
    changed = [*levels[:-1], levels[-1]._replace(node=opened.address)]
    for number, level in enumerate(levels):
        for loop in level.loops():
            if number == inner and not loop.first <= opened.call.lineno <= loop.last:
                continue
            if not may_iterate(loop, level.function, _LEAST_REQUESTS):
                continue
            if Inputs(changed, number, loop, purity).of_call(inner) is Value.SAME:
                yield number, loop


def _is_of_self(address: ast.expr) -> bool:
    """Return whether an object of the program knows the server."""
    names = {one.id for one in ast.walk(address) if isinstance(one, ast.Name)}
    return "self" in names and names <= {"self"}
