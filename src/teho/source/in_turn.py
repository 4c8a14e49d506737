"""Finds requests that wait for each other, although they do not need each other.

There are three kinds. The loop of a coroutine awaits one call, whose arguments come only from the
items of the loop and from values that stay the same: the next request could begin before the loop
uses the last answer. Or a coroutine holds a lock of asyncio while it awaits a request: the requests
of all tasks wait for each other. Each request has its own connection, or a client such as aiohttp
has several. Or a loop sends the requests in blocks, `await asyncio.gather(*block)`: the next block
waits for the slowest request of a block.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from teho.model.in_source import InTurn
from teho.model.stack import Frame
from teho.source.blocks import find_blocks
from teho.source.changes import named_values
from teho.source.connections import opens_connection
from teho.source.known_early import Known
from teho.source.parsed import Loop, dotted_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, levels_of

__all__ = ["find_in_turn"]

_CLIENTS = re.compile(r"/(aiohttp|httpx|httpcore|aiobotocore|aioboto3|s3fs|gcsfs|adlfs)/")
"""Libraries that open several connections if several requests wait."""
_LOCKS = re.compile(r"(asyncio\.)?(locks\.)?(Lock\(\)|(Bounded)?Semaphore\((value=)?1\))")


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
        if not has_own and not (taken and _uses_opened(level, taken, purity)):
            continue
        calls = tuple(one.frame for one in levels[: number + 1])
        text = level.file.text_of(level.node)
        if taken is not None:
            line = Frame(level.frame.file, level.frame.function, *taken[:2])
            return InTurn(calls=calls, loop=line, last=taken[2], call_text=text, lock=line)
        loops = [one for one in level.loops() if isinstance(one.node, ast.For)]
        if loops and _may_begin_earlier(levels, number, loops[-1], purity):
            first = level.file.line_text(loops[-1].line).rstrip(":")
            line = Frame(level.frame.file, level.frame.function, loops[-1].line, first)
            return InTurn(calls=calls, loop=line, last=loops[-1].last, call_text=text)
    return None


def _taken_lock(level: Level) -> tuple[int, str, int] | None:
    """Return the line that takes a lock around a level's line, its text, and the block's end."""
    for node in level.function.nodes:
        if not isinstance(node, ast.AsyncWith):
            continue
        first, last = node.body[0].lineno, node.end_lineno or 0
        if first <= level.frame.line <= last and any(
            _is_lock(item.context_expr, level) for item in node.items
        ):
            return node.lineno, level.file.line_text(node.lineno).rstrip(":"), last
    return None


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


def _uses_opened(level: Level, taken: tuple[int, str, int], purity: Purity) -> bool:
    """Return whether a call gets a connection that the task opened while it held the same lock."""
    opened: set[str] = set()
    for node in level.function.nodes:
        if not (isinstance(node, ast.Assign) and taken[0] < node.lineno < level.frame.line):
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
