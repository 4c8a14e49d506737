"""Finds requests that wait for each other, although they do not need each other.

There are three kinds. The loop of a coroutine awaits one call, whose arguments come only from the
items of the loop and from values that stay the same: the next request could begin before the loop
uses the last answer. Or a coroutine holds a lock of asyncio while it awaits a request: the requests
of all tasks wait for each other. Each request has its own connection, a client such as aiohttp has
several, or the task has opened its connection before it took the lock. Or a loop sends the requests
in blocks, `await asyncio.gather(*block)`: the next block waits for the slowest request of a block.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from teho.model.in_source import InTurn
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.blocks import find_blocks
from teho.source.changes import named_values
from teho.source.connections import opens_connection
from teho.source.counts import length
from teho.source.held_requests import lines_of_request
from teho.source.known_early import Known
from teho.source.parsed import Loop, dotted_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, levels_of

__all__ = ["find_in_turn"]

_CLIENTS = lazy_pattern(r"/(aiohttp|httpx|httpcore|aiobotocore|aioboto3|s3fs|gcsfs|adlfs)/")
"""Libraries that open several connections if several requests wait."""
_MANY = 4
"""With this number of items, a loop waits several times."""
_LOCKS = lazy_pattern(r"(asyncio\.)?(locks\.)?(Lock\(\)|(Bounded)?Semaphore\((value=)?1\))")


def find_in_turn(frames: Sequence[Frame], purity: Purity) -> InTurn | None:
    """Return the request on a stack that a loop could have begun earlier; None if there is none.

    Args:
        frames: the stack, innermost frame first.
        purity: the program.
    """
    levels = levels_of(frames, purity.program)
    is_client = any(_CLIENTS.search(frame.file) for frame in frames)
    for number, level in enumerate(levels):
        if level.is_measured:
            break
        if not isinstance(level.node, ast.Call):
            continue
        blocks = find_blocks(levels, number, purity)
        if blocks is not None:
            return blocks
        taken = _taken_lock(level)
        has_own = is_client or any(_opens(one.place, purity) for one in levels[number + 1 :])
        opens = partial(_is_opening, level=level, purity=purity)
        moved = lines_of_request(level, taken, opens) if taken is not None else None
        if not has_own and not moved and not (taken and _uses_opened(level, taken, purity)):
            continue
        calls = tuple(one.frame for one in levels[: number + 1])
        text = level.file.text_of(level.node)
        if taken is not None:
            head = level.file.line_text(taken.lineno).rstrip(":")
            line = Frame(level.frame.file, level.frame.function, taken.lineno, head)
            last = taken.end_lineno or taken.lineno
            return InTurn(calls=calls, loop=line, last=last, call_text=text, lock=line, moved=moved)
        loops = [one for one in level.loops() if isinstance(one.node, ast.For)]
        if loops and _may_begin_earlier(levels, number, loops[-1], purity):
            first = level.file.line_text(loops[-1].line).rstrip(":")
            line = Frame(level.frame.file, level.frame.function, loops[-1].line, first)
            return InTurn(
                calls=calls,
                loop=line,
                last=loops[-1].last,
                call_text=text,
                gathered=_gathered(loops[-1], level.node),
                is_many=_is_many(loops[-1], level),
            )
    return None


def _is_many(loop: Loop, level: Level) -> bool:
    """Return whether the source says that a loop has several items."""
    count = length(loop.iterable, level.function) if loop.iterable is not None else None
    return count is not None and count >= _MANY


def _gathered(loop: Loop, call: ast.Call) -> str:
    """Return a line that replaces a loop; empty if the loop does more than to collect answers."""
    node = loop.node
    if not isinstance(node, ast.For) or len(node.body) != 1 or node.orelse:
        return ""
    (only,) = node.body
    value = only.value if isinstance(only, ast.Expr) else None
    target, items = ast.unparse(node.target), ast.unparse(node.iter)
    together = f"await asyncio.gather(*({ast.unparse(call)} for {target} in {items}))"
    match value:
        case ast.Await(value=awaited) if awaited is call:
            return together
        case ast.Call(func=ast.Attribute(value=kept, attr="append"), args=[ast.Await(awaited)]) if (
            awaited is call and not value.keywords
        ):
            return f"{ast.unparse(kept)}.extend({together})"
    return ""


def _taken_lock(level: Level) -> ast.AsyncWith | None:
    """Return the block of a lock around a level's line; None: there is none."""
    for node in level.function.nodes:
        if not isinstance(node, ast.AsyncWith):
            continue
        first, last = node.body[0].lineno, node.end_lineno or 0
        if first <= level.frame.line <= last and any(
            _is_lock(item.context_expr, level) for item in node.items
        ):
            return node
    return None


def _is_opening(call: ast.Call, level: Level, purity: Purity) -> bool:
    """Return whether a call opens a connection, itself or in a function of the program."""
    if opens_connection(call, level.place, purity.program):
        return True
    called = purity.program.called(call, level.place)
    return isinstance(called, Place) and _opens(called, purity)


def _is_lock(value: ast.expr, level: Level) -> bool:
    """Return whether a file makes a lock for one task, and gives it the name of this value."""
    name = dotted_name(value).rpartition(".")[2]
    made = [
        given
        for function in level.function.module.every()
        for node in function.nodes
        for target, given in named_values(node)
        if name and dotted_name(target).rpartition(".")[2] == name
    ]
    return bool(made) and all(_LOCKS.fullmatch(ast.unparse(one)) for one in made)


def _opens(place: Place, purity: Purity) -> bool:
    """Return whether a function opens a connection and keeps it for itself, or returns it."""
    return any(
        isinstance(node, ast.Call) and opens_connection(node, place, purity.program)
        for node in place.function.nodes
    )


def _uses_opened(level: Level, taken: ast.AsyncWith, purity: Purity) -> bool:
    """Return whether a call gets a connection that the task opened while it held the same lock."""
    opened: set[str] = set()
    for node in level.function.nodes:
        if not (isinstance(node, ast.Assign) and taken.lineno < node.lineno < level.frame.line):
            continue
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        called = purity.program.called(value, level.place) if isinstance(value, ast.Call) else None
        if isinstance(called, Place) and _opens(called, purity):
            names = (one for target in node.targets for one in ast.walk(target))
            opened.update(one.id for one in names if isinstance(one, ast.Name))
    used = ast.walk(level.node) if level.node is not None else ()
    return any(isinstance(one, ast.Name) and one.id in opened for one in used)


def _may_begin_earlier(levels: Sequence[Level], number: int, loop: Loop, purity: Purity) -> bool:
    node = levels[number].node
    body = getattr(loop.node, "body", [])
    inside = purity.program.all_nodes(loop.node, body)
    waits = [one for one in inside if isinstance(one, (ast.Await, ast.AsyncWith, ast.AsyncFor))]
    if len(waits) != 1 or not isinstance(node, ast.Call):
        return False
    is_awaited = isinstance(waits[0], ast.Await) and waits[0].value is node
    ends_early = any(isinstance(one, (ast.Break, ast.Return, ast.Yield)) for one in inside)
    is_timed = any(
        isinstance(one, ast.Call) and dotted_name(one.func).endswith("sleep") for one in inside
    )
    if not is_awaited or ends_early or is_timed:
        return False
    arguments = [*node.args, *(word.value for word in node.keywords)]
    if isinstance(node.func, ast.Attribute) and not isinstance(
        purity.program.called(node, levels[number].place), (Place, str)
    ):
        arguments.append(node.func.value)
    check = Known(levels, number, loop, purity)
    return all(check.is_known(one) for one in arguments)
