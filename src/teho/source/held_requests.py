"""Finds the lines of a request that a task makes while it holds a lock that others wait for.

The task has opened the connection itself, before it took the lock. So the lock cannot protect the
connection, and the lines that use the connection can be moved out of the lock's block.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from teho.source.parsed import Function, dotted_name
from teho.source.stack import Level

__all__ = ["lines_of_request"]

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


def lines_of_request(
    level: Level, block: ast.AsyncWith, opens: Callable[[ast.Call], bool]
) -> tuple[int, int] | None:
    """Return the first and the last line of a block that use the task's own connection.

    Args:
        level: the function with the block, which executes a line of the block.
        block: the block of the lock.
        opens: whether a call opens a connection that belongs to the function.

    Returns:
        None if the function has not opened the connection, or if more than the request depends on
        these lines: under a condition, the lock may protect the decision.
    """
    function = level.function
    if any(_is_made_in(item.context_expr, function) for item in block.items):
        return None  # other tasks have their own locks
    names = _connections(function, opens)
    used = [number for number, one in enumerate(block.body) if _uses(one, names)]
    if not used or level.node is None or not _uses(level.node, names):
        return None
    moved = block.body[used[0] : used[-1] + 1]
    if not all(isinstance(one, _SIMPLE) for one in moved) or _changes_shared(moved):
        return None
    return moved[0].lineno, moved[-1].end_lineno or moved[-1].lineno


def _connections(function: Function, opens: Callable[[ast.Call], bool]) -> frozenset[str]:
    """Return the names that only get a connection which the function opens."""
    names: list[str] = []
    for node in function.nodes:
        if not isinstance(node, ast.Assign):
            continue
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call) and opens(value):
            every = (one for target in node.targets for one in ast.walk(target))
            names += [one.id for one in every if isinstance(one, ast.Name)]
    return frozenset(
        name
        for name in names
        if len(function.assigned.get(name, ())) == 1 and name not in function.outer_names
    )


def _uses(node: ast.AST, names: frozenset[str]) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def _changes_shared(statements: Sequence[ast.stmt]) -> bool:
    """Return whether statements store something in an object that other tasks may have."""
    return any(
        isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store)
        for statement in statements
        for one in ast.walk(statement)
    )


def _is_made_in(lock: ast.expr, function: Function) -> bool:
    return function.binds(dotted_name(lock)) and dotted_name(lock) not in function.params
