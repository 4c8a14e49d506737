"""The lengths of the items of a batch, as a program computes them."""

from __future__ import annotations

import ast

from teho.source.parsed import Function
from teho.source.slow_calls.loop_parts import names_in

__all__ = ["is_length", "longest_of"]


def is_length(node: ast.AST, function: Function) -> bool:
    """Return whether an expression is the length of an item: `len(x)`, `x.shape[0]`, `x.size(1)`.

    Args:
        node: the expression.
        function: the function with it.
    """
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[_]):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Call(func=ast.Attribute(attr="size")) | ast.Attribute(attr="size"):
            return True
        case ast.Call(func=ast.Name(id="min"), args=args):
            return any(is_length(one, function) for one in args)
        case ast.Name(id=name):
            given = function.assigned.get(name, [])
            if len(given) != 1 or given[0].value is None:
                return False
            if given[0].loop is None:
                return is_length(given[0].value, function)
            return "len" in ast.unparse(given[0].value)  # `for row, n in enumerate(lengths)`
    return False


def longest_of(end: ast.expr, line: int, made: int, function: Function) -> str:
    """Return the length of the longest item, as code; empty if it cannot be written.

    Args:
        end: the length of one item, inside the loop that fills the rows.
        line: the line that fills a row.
        made: the line that makes the array, before this loop.
        function: the function with both.
    """
    loops = [one for one in function.loops_at(line) if isinstance(one.node, ast.For)]
    if not loops or not isinstance(loops[-1].node, ast.For):
        return ""
    loop = loops[-1]
    length = _resolved(end, function)
    target, items = _items(loops[-1].node)
    names = names_in(length)
    own = {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    if not names & own or loop.line <= made:
        return ""
    for name in names - own:
        if any(loop.first <= one.line <= loop.last for one in function.assigned.get(name, ())):
            return ""
    if not _can_be_repeated(items) or any(
        one.line >= made for name in names_in(items) for one in function.assigned.get(name, ())
    ):
        return ""
    return f"max({ast.unparse(length)} for {ast.unparse(target)} in {ast.unparse(items)})"


def _resolved(end: ast.expr, function: Function) -> ast.expr:
    given = function.assigned.get(end.id, []) if isinstance(end, ast.Name) else []
    is_plain = len(given) == 1 and given[0].loop is None and given[0].value is not None
    return given[0].value or end if is_plain else end


def _items(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """Return the items of a loop without their numbers: of `for i, x in enumerate(y)`."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[_, item]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[items, *_]),
        ):
            return item, items
    return loop.target, loop.iter


def _can_be_repeated(items: ast.expr) -> bool:
    """Return whether a loop can go through the same items twice."""
    match items:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return True
        case ast.Call(func=ast.Name(id="zip" | "sorted" | "list" | "reversed"), args=args):
            return all(map(_can_be_repeated, args))
    return False
