"""Finds requests that a loop sends in blocks, so that each block waits for its slowest request.

An example is `await asyncio.gather(*(fetch(url) for url in urls[i : i + 8]))` in a loop. With a
semaphore, the next request begins as soon as one of the eight is ready.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import Block, InTurn
from teho.model.stack import Frame
from teho.source.known_early import Known
from teho.source.parsed import Loop, dotted_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_blocks"]

_GATHERS = frozenset(("asyncio.gather", "asyncio.tasks.gather"))
_BATCHED = frozenset(("batched", "itertools.batched", "more_itertools.batched", "chunked"))
_BATCHED_TOO = frozenset(("more_itertools.chunked", "toolz.partition_all"))
_COLLECT = frozenset(("extend", "print", "update", "info", "debug", "set_postfix", "append"))
"""Functions that collect the results of a block, or show the progress."""


def find_blocks(levels: Sequence[Level], number: int, purity: Purity) -> InTurn | None:
    """Return the call of `asyncio.gather` for one block of requests; None: it is none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        number: the level that may have the call.
        purity: the program.
    """
    level = levels[number]
    call = level.node
    if not isinstance(call, ast.Call) or purity.program.called(call, level.place) not in _GATHERS:
        return None
    loops = [one for one in level.loops() if isinstance(one.node, ast.For)]
    made = _requests(call, level)
    size = _size(loops[-1], made, level) if loops and made is not None else None
    if made is None or size in (None, "1"):
        return None
    loop = loops[-1]
    if not _only_collects(call, loop) or not _is_known(levels, number, loop, made, purity):
        return None
    head = level.file.line_text(loop.line).rstrip(":")
    outer = f"for {ast.unparse(_target(loop))} in {ast.unparse(_iterable(loop))}"
    inner = made.generators[0]
    items = _block(inner.iter, loop, level)
    ifs = "".join(f" if {ast.unparse(one)}" for one in inner.ifs)
    every = f"{outer} for {ast.unparse(inner.target)} in {ast.unparse(items)}{ifs}"
    return InTurn(
        calls=tuple(one.frame for one in levels[: number + 1]),
        loop=Frame(level.frame.file, level.frame.function, loop.line, head),
        last=loop.last,
        call_text=level.file.text_of(call),
        block=Block(
            size=size,
            request=ast.unparse(made.elt),
            every=every,
            options="".join(f", {ast.unparse(one)}" for one in call.keywords),
        ),
    )


def _target(loop: Loop) -> ast.expr:
    return loop.node.target if isinstance(loop.node, ast.For) else ast.Constant(None)


def _iterable(loop: Loop) -> ast.expr:
    return loop.iterable or ast.Constant(None)


def _requests(call: ast.Call, level: Level) -> ast.GeneratorExp | ast.ListComp | None:
    """Return the comprehension that makes the requests of a block."""
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Starred):
        return None
    given = call.args[0].value
    if isinstance(given, ast.Name):
        found = level.function.assigned.get(given.id, [])
        value = found[0].value if len(found) == 1 and found[0].loop is None else None
        given = value if value is not None else given
    is_plain = (
        isinstance(given, (ast.GeneratorExp, ast.ListComp))
        and len(given.generators) == 1
        and not given.generators[0].is_async
        and isinstance(given.elt, ast.Call)
    )
    return given if is_plain and isinstance(given, (ast.GeneratorExp, ast.ListComp)) else None


def _block(items: ast.expr, loop: Loop, level: Level) -> ast.expr:
    """Return the items of a block: of a name that the loop gives a value, this value."""
    if isinstance(items, ast.Name):
        given = level.function.assigned.get(items.id, [])
        one = given[0] if len(given) == 1 else None
        if one and one.value and one.loop is None and loop.first <= one.line <= loop.last:
            return one.value
    return items


def _size(loop: Loop, made: ast.GeneratorExp | ast.ListComp, level: Level) -> str | None:
    """Return the number of requests of a block, as the source has it; None: there are no blocks."""
    items, iterable = _block(made.generators[0].iter, loop, level), _iterable(loop)
    target = _target(loop)
    if not isinstance(iterable, ast.Call) or not isinstance(target, ast.Name):
        return None
    name, given = dotted_name(iterable.func), iterable.args
    if name in _BATCHED | _BATCHED_TOO and len(given) == 2:
        is_item = isinstance(items, ast.Name) and items.id == target.id
        size = given[0] if name.endswith("partition_all") else given[1]
        return ast.unparse(size) if is_item else None
    if name not in ("range", "trange") or len(given) != 3:
        return None
    step = ast.unparse(given[2])
    match items:
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper, step=None)):
            pass
        case ast.Call(func=ast.Name(id="range"), args=[lower, upper]):
            pass
        case _:
            return None
    is_from = isinstance(lower, ast.Name) and lower.id == target.id
    ends = {f"{target.id} + {step}", f"{step} + {target.id}"}
    end = upper
    if isinstance(upper, ast.Call) and dotted_name(upper.func) == "min":
        end = next((one for one in upper.args if ast.unparse(one) in ends), upper)
    return step if is_from and end is not None and ast.unparse(end) in ends else None


def _only_collects(call: ast.Call, loop: Loop) -> bool:
    """Return whether a loop only waits for its blocks, and collects their results.

    A pause limits the number of requests per second. What else the loop does with a block may
    need the blocks, such as writing one file for each of them.
    """
    body: list[ast.stmt] = getattr(loop.node, "body", [])
    place = next((number for number, one in enumerate(body) if call in list(ast.walk(one))), None)
    if place is None or not isinstance(body[place], (ast.Assign, ast.AugAssign, ast.Expr)):
        return False
    inside = [node for one in body for node in ast.walk(one)]
    waits = [one for one in inside if isinstance(one, (ast.Await, ast.AsyncWith, ast.AsyncFor))]
    if len(waits) != 1 or not isinstance(waits[0], ast.Await) or waits[0].value is not call:
        return False
    if any(isinstance(one, (ast.Break, ast.Return, ast.Yield, ast.Continue)) for one in inside):
        return False
    names = [dotted_name(one.func) for one in inside if isinstance(one, ast.Call)]
    if any(name.endswith(("sleep", "wait", "acquire")) for name in names):
        return False
    before = all(isinstance(one, ast.Assign) for one in body[:place])
    return before and all(map(_is_collecting, body[place + 1 :]))


def _is_collecting(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.value, (ast.Name, ast.Call))
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    name = called.attr if isinstance(called, ast.Attribute) else dotted_name(called)
    return name in _COLLECT


def _is_known(
    levels: Sequence[Level],
    number: int,
    loop: Loop,
    made: ast.GeneratorExp | ast.ListComp,
    purity: Purity,
) -> bool:
    """Return whether no request needs the answer to a request of an earlier block."""
    inner = made.generators[0]
    bound = [one.id for one in ast.walk(inner.target) if isinstance(one, ast.Name)]
    check = Known(levels, number, loop, purity, bound)
    request = made.elt
    if not isinstance(request, ast.Call):
        return False
    values = [*request.args, *(word.value for word in request.keywords)]
    values += [_block(inner.iter, loop, levels[number]), *inner.ifs]
    return all(check.is_known(one) for one in values)
