"""Finds connections to the same server that a loop opens again in each iteration.

Time counts from the call that opens the connection to the moment when the program can use it: if a
function of the program opens a connection, logs in and returns the connection, all its time counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from teho.model.in_source import ReopenedConnection
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.changes import named_values
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop, dotted_name, root_name
from teho.source.program import Place, Program
from teho.source.purity import Purity
from teho.source.stack import Level, levels_of

__all__ = ["find_reopened", "opens_connection"]

_OPENERS = lazy_pattern(
    r"asyncio\.(streams\.)?open_(unix_)?connection|socket\.create_connection"
    r"|(anyio|trio)\.(connect_tcp|connect_unix|open_tcp_stream|open_unix_socket)"
    r"|ftplib\.FTP(_TLS)?|(aio)?smtplib\.(SMTP|SMTP_SSL|LMTP)|imaplib\.IMAP4(_SSL)?|poplib\.POP3\w*"
    r"|telnetlib3?\.(Telnet|open_connection)|nntplib\.NNTP\w*|multiprocessing\.connection\.Client"
    r"|(asyncpg|aiomysql|asyncmy|aioodbc|psycopg2?|pymysql|MySQLdb|mysql\.connector|mariadb|oracledb"
    r"|cx_Oracle|pyodbc|pymssql|snowflake\.connector|trino\.dbapi|pyhive\.\w+|vertica_python)\.connect"
    r"|psycopg\.(AsyncConnection|Connection)\.connect|clickhouse_connect\.get_(async_)?client"
    r"|websockets\.(\w+\.)*(connect|unix_connect)|websocket\.create_connection"
    r"|asyncssh\.connect|fabric\.Connection|rpyc\.\w*connect|serial\.Serial|vxi11\.Instrument"
    r"|aio_?pika\.connect\w*|pika\.BlockingConnection|nats\.connect"
)
"""Functions of libraries that open a connection, and return it when it can be used."""
_METHODS = frozenset(("create_connection", "create_unix_connection", "open_resource"))
"""Methods of event loops, and of PyVISA."""
_CONNECTED = lazy_pattern(
    r"socket\.socket|paramiko\.(\w+\.)?SSHClient|ftplib\.FTP(_TLS)?|pysftp\.\w+"
    r"|http\.client\.HTTPS?Connection|(asyncua|opcua)\.Client|pymodbus\.client\.\w+"
)
"""Classes of libraries whose objects open a connection with `connect`."""
_BESIDES = frozenset(("ssl", "ssl_context", "context", "timeout", "loop", "limit", "cursorclass"))
"""Arguments that do not say which server, and which user, a connection is for."""
_SET_UP = ("__init__", "__aenter__", "__enter__")
_CLOSED = lazy_pattern(r"HTTP/1\.0|connection: *close", re.IGNORECASE)
"""A text with which a client asks a server to close the connection after the answer."""
_READS = ("recv", "read")


class _Opening(NamedTuple):
    """A call that opens a connection."""

    call: ast.Call
    at: Place
    last: ast.Call
    """The library's function that it leads to."""
    last_at: Place


def find_reopened(frames: Sequence[Frame], purity: Purity) -> ReopenedConnection | None:
    """Return the call on a stack that opens a connection to the same server in each iteration.

    The outermost call that opens a connection counts, and the outermost loop. None: there is no
    such call, or Teho cannot be sure.

    Args:
        frames: the stack, innermost frame first.
        purity: the program.
    """
    levels = levels_of(frames, purity.program)
    for number, level in enumerate(levels):
        if level.is_measured:
            break
        if not isinstance(level.node, ast.Call):
            continue
        opening = _openings(purity.program).of(level.node, level.place)
        if opening is None:
            continue
        for at in range(number + 1):
            if any(_ends_connection(one.place) for one in levels[at : number + 1]):
                continue
            loops = levels[at].loops()
            if levels[at].is_called_again:
                loops.insert(0, levels[at].as_loop())
            for loop in loops:
                is_left = loop.node is not levels[at].function.node and _leaves(levels[at], loop)
                if not is_left and _is_same(levels, number, at, loop, opening, purity):
                    return _reopened(levels, number, at, loop, opening)
        break
    return None


def opens_connection(call: ast.Call, at: Place, program: Program) -> bool:
    """Return whether a call opens a connection that the caller gets."""
    return _openings(program).of(call, at) is not None


def _reopened(
    levels: Sequence[Level], number: int, at: int, loop: Loop, opening: _Opening
) -> ReopenedConnection:
    outer = levels[at]
    text = outer.file.line_text(loop.line).rstrip(":")
    path, function = opening.last_at
    return ReopenedConnection(
        calls=tuple(level.frame for level in levels[: number + 1]),
        loop=Frame(outer.frame.file, outer.frame.function, loop.line, text),
        last=loop.last,
        opened=Frame(path, function.name, opening.last.lineno, ast.unparse(opening.last)),
    )


class _Openings:
    """The calls of a program that open connections; each function is examined once.

    Args:
        program: the files.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._given: dict[int, _Opening | None] = {}
        """By the id of a function's node."""

    def of(self, call: ast.Call, at: Place) -> _Opening | None:
        """Return how a call opens a connection; None if it opens none that the caller can use."""
        called = self._program.called(call, at)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        is_opener = isinstance(called, str) and _OPENERS.fullmatch(called) is not None
        is_method = called is None and (method in _METHODS or _connects(call, at, self._program))
        if is_opener or is_method:
            return _Opening(call, at, call, at)
        functions: list[Place] = []
        if isinstance(called, Place):
            functions = [called]
        elif isinstance(called, ast.ClassDef):
            inner = at.function.module.inner
            names = (f"{called.name}.{method}" for method in _SET_UP)
            functions = [Place(at.path, inner[name]) for name in names if name in inner]
        found = (self._given_by(one) for one in functions)
        return next((one for one in found if one is not None), None)

    def _given_by(self, place: Place) -> _Opening | None:
        """Return the call of a function that opens a connection which the caller gets.

        The function returns the connection, or an object of the program keeps it.
        """
        key = id(place.function.node)
        if key not in self._given:
            self._given[key] = None  # a function that calls itself
            self._given[key] = self._find_given_by(place)
        return self._given[key]

    def _find_given_by(self, place: Place) -> _Opening | None:
        nodes = place.function.nodes
        for node in nodes:
            opening = self.of(node, place) if isinstance(node, ast.Call) else None
            if opening is None or not isinstance(node, ast.Call):
                continue
            names = {
                dotted_name(target)
                for one in nodes
                for target, value in _values(one)
                if _call_in(value) is node
            }
            if isinstance(node.func, ast.Attribute) and _connects(node, place, self._program):
                names.add(root_name(node.func.value))
            is_kept = any(one.startswith("self.") for one in names) and not _closes(nodes, names)
            returned = [
                one.value
                for one in nodes
                if isinstance(one, (ast.Return, ast.Yield)) and one.value is not None
            ]
            if is_kept or any(_gives(value, node, names) for value in returned):
                return _Opening(node, place, opening.last, opening.last_at)
        return None


@lru_cache(maxsize=16)
def _openings(program: Program) -> _Openings:
    return _Openings(program)


def _connects(call: ast.Call, at: Place, program: Program) -> bool:
    """Return whether a call is `connect` of a new object, such as a socket."""
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in {"connect", "connect_ex"}:
        return False
    given = at.function.assigned.get(root_name(method.value), [])
    made = given[0].value if len(given) == 1 else None
    called = program.called(made, at) if isinstance(made, ast.Call) else None
    return isinstance(called, str) and _CONNECTED.fullmatch(called) is not None


def _values(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the names of a statement, each with the value that it gets."""
    yield from named_values(node)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield item.optional_vars, item.context_expr


def _call_in(value: ast.expr) -> ast.expr:
    """Return a value without what waits for it: `await`, and a time limit."""
    if isinstance(value, ast.Await):
        return _call_in(value.value)
    if isinstance(value, ast.Call) and value.args:
        name = dotted_name(value.func).rpartition(".")[2]
        if name in {"wait_for", "closing", "aclosing", "enter_context", "enter_async_context"}:
            return _call_in(value.args[0])
    return value


def _gives(value: ast.expr, call: ast.Call, names: set[str]) -> bool:
    """Return whether a returned value has a connection, and not only an answer of the server."""
    value = _call_in(value)
    if value is call or dotted_name(value) in names:
        return True
    parts: list[ast.expr] = []
    if isinstance(value, (ast.Tuple, ast.List)):
        parts = value.elts
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        parts = [*value.args, *(word.value for word in value.keywords)]
    return any(_gives(one, call, names) for one in parts)


def _closes(nodes: Sequence[ast.AST], names: set[str]) -> bool:
    return any(
        isinstance(one, ast.Attribute) and one.attr == "close" and dotted_name(one.value) in names
        for one in nodes
    )


def _is_same(
    levels: Sequence[Level],
    number: int,
    at: int,
    loop: Loop,
    opening: _Opening,
    purity: Purity,
) -> bool:
    """Return whether each iteration of a loop opens a connection to the same server."""
    changed = list(levels)
    if opening.at.function is levels[number].function and opening.call is levels[number].node:
        changed[number] = levels[number]._replace(node=_address(opening, purity.program))
        return Inputs(changed, at, loop, purity).of_call(number) is Value.SAME
    if Inputs(levels, at, loop, purity).of_call(number) is not Value.SAME:
        return False
    inner = number + 1
    if inner == len(levels) or levels[inner].function is not opening.at.function:
        return False
    changed[inner] = levels[inner]._replace(node=_address(opening, purity.program))
    return Inputs(changed, at, loop, purity).of_call(inner) is Value.SAME


def _address(opening: _Opening, program: Program) -> ast.expr:
    """Return the arguments of a call that say which server, and which user, it is for."""
    call, method = opening.call, opening.call.func
    is_of_loop = isinstance(method, ast.Attribute) and method.attr.startswith("create_")
    # The first argument of an event loop's method makes the protocol.
    begin = 1 if is_of_loop and program.called(call, opening.at) is None else 0
    given = call.args[begin:]
    words = [one.value for one in call.keywords if one.arg not in _BESIDES]
    return ast.Tuple(elts=[*given, *words], ctx=ast.Load())


def _leaves(level: Level, loop: Loop) -> bool:
    """Return whether an iteration without an exception is the last one: it only tries again."""
    body = getattr(loop.node, "body", None)
    return isinstance(body, list) and _ends_after(body, level.frame.line)


def _ends_after(block: Sequence[ast.stmt], line: int) -> bool:
    """Return whether the statements after a line, in the blocks around it, leave the loop."""
    for place, one in enumerate(block):
        if not one.lineno <= line <= (one.end_lineno or one.lineno):
            continue
        if any(isinstance(later, (ast.Break, ast.Return)) for later in block[place:]):
            return True
        if isinstance(one, ast.Try) and any(
            isinstance(later, (ast.Break, ast.Return)) for later in one.orelse
        ):
            return True
        blocks = (getattr(one, name, None) for name in ("body", "orelse", "finalbody"))
        return any(_ends_after(inner, line) for inner in blocks if isinstance(inner, list))
    return False


def _ends_connection(place: Place) -> bool:
    """Return whether a function reads an answer up to the end of the connection, or asks for it."""
    for node in place.function.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if _CLOSED.search(text):
                return True
        if isinstance(node, ast.While) and _reads_to_end(node):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            size = node.args[0] if node.args else None
            is_all = size is None or ast.unparse(size) == "-1"
            if node.func.attr == "read" and is_all and not node.keywords:
                return True
    return False


def _reads_to_end(loop: ast.While) -> bool:
    """Return whether a loop reads until there is nothing more."""
    ends = any(
        isinstance(one, ast.If)
        and isinstance(one.test, ast.UnaryOp)
        and isinstance(one.test.op, ast.Not)
        and isinstance(one.body[-1], ast.Break)
        for one in loop.body
    )
    nodes = ast.walk(loop if ends else loop.test)
    return any(isinstance(one, ast.Attribute) and one.attr in _READS for one in nodes)
