"""Lists that a loop uses as queues: from which it always takes the first element."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.source.lists import KnownList
from teho.source.parsed import Function, Loop
from teho.source.stack import Level

__all__ = ["as_often", "heap_calls"]

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
_ENDS = (ast.Continue, ast.Break, ast.Return, ast.Raise)
_LEAST = 2
"""Number of statements with which a statement is compared."""


def heap_calls(known: KnownList, level: Level, loop: Loop) -> tuple[str, ...]:
    """Return the calls of `heapq` that replace those of a list that a loop keeps sorted.

    First the call that takes the smallest element, then those that add one. Empty: the loop does
    not sort the list, or the program uses the list for more than this.

    Args:
        known: the list.
        level: the function that uses it.
        loop: the loop.
    """
    function = level.function
    parents = _parents(function)
    sorts = []
    for node in known.others:
        parent = parents.get(node)
        call = parents.get(parent) if isinstance(parent, ast.Attribute) else None
        if isinstance(parent, ast.Attribute) and parent.attr == "sort":
            if not isinstance(call, ast.Call) or call.args or call.keywords:
                return ()
            sorts.append(call)
        elif not _only_tests(node, parents):
            return ()
    is_in_loop = [loop.first <= one.lineno <= loop.last for one in sorts]
    if not sorts or not all(is_in_loop):
        return ()
    for one in known.shrinks:
        if not isinstance(one, ast.Call) or ast.unparse(one) != f"{known.text}.pop(0)":
            return ()
        if not loop.first <= one.lineno <= loop.last:
            return ()
    added = []
    for one in known.grows:
        match one:
            case ast.Call(func=ast.Attribute(attr="append"), args=[element], keywords=[]):
                added.append(f"heapq.heappush({known.text}, {ast.unparse(element)})")
            case _:
                return ()
    if not known.shrinks or not added:
        return ()
    return f"heapq.heappop({known.text})", *dict.fromkeys(added)


def as_often(node: ast.AST | None, function: Function) -> tuple[int, ...]:
    """Return the lines of simple statements that are executed as often as an expression.

    They are in the same block, and no statement between may end the iteration. Empty: there are
    fewer than two of them.
    """
    parents = _parents(function)
    statement = node
    while statement is not None and not isinstance(statement, ast.stmt):
        statement = parents.get(statement)
    block = _block(statement, parents) if statement is not None else []
    if statement not in block:
        return ()
    place = block.index(statement)
    found = [*_beside(block[place + 1 :]), *_beside(block[:place][::-1])]
    lines = {line for first, last in found for line in range(first, last + 1)}
    return tuple(sorted(lines)) if len(found) >= _LEAST else ()


def _beside(statements: Sequence[ast.stmt]) -> list[tuple[int, int]]:
    """Return the first and last lines of statements, up to one that may end the iteration."""
    found = []
    for one in statements:
        if isinstance(one, _SIMPLE):
            found.append((one.lineno, one.end_lineno or one.lineno))
        elif isinstance(one, ast.If) and one.body[0].lineno > (one.test.end_lineno or 0):
            found.append((one.test.lineno, one.test.end_lineno or one.test.lineno))
        if any(isinstance(inner, _ENDS) for inner in ast.walk(one)):
            break
    return found


def _block(statement: ast.AST, parents: dict[ast.AST, ast.AST]) -> list[ast.stmt]:
    outer = parents.get(statement)
    blocks = (getattr(outer, name, None) for name in ("body", "orelse", "finalbody"))
    return next((one for one in blocks if isinstance(one, list) and statement in one), [])


def _only_tests(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether an expression only tests whether a list is empty, or takes its length."""
    parent = parents.get(node)
    match parent:
        case ast.Call(func=ast.Name(id="len" | "bool")):
            return True
        case ast.While(test=test) | ast.If(test=test):
            return test is node
        case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
            return _only_tests(parent, parents)
    return False


def _parents(function: Function) -> dict[ast.AST, ast.AST]:
    return {child: node for node in function.nodes for child in ast.iter_child_nodes(node)}
