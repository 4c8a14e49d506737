"""Finds backward passes that go through the graph of all earlier parts of a sequence again.

With `loss.backward(retain_graph=True)` for each part of a sequence, and a state that stays attached
to the graph, the backward pass of each part goes back to the first part. One backward pass for the
sum of the losses gives the same gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.source.counts import may_iterate
from teho.source.parsed import Loop
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import (
    depends_on,
    names_in,
    rewritten_loop,
    statements_of,
)
from teho.source.stack import Level

__all__ = ["find_backward_again"]

_LEAST_PARTS = 3
_DETACHES = frozenset(("detach", "detach_", "data", "no_grad", "inference_mode"))
_NEEDS_GRADIENTS = frozenset(
    (
        *("grad", "step", "zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_"),
        *("register_hook", "get_total_norm", "autograd"),
    )
)
"""Attributes in a loop that use the gradients of each part."""
_NAMES = ("whole_loss", "loss_of_all_parts")


def find_backward_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that goes back through all earlier parts of a sequence.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for level in levels:
        call = level.node
        if not isinstance(call, ast.Call) or not _retains(call):
            continue
        loop = next((one for one in reversed(level.loops()) if one.is_statement), None)
        if loop is None or not may_iterate(loop, level.function, _LEAST_PARTS):
            return None
        body = list(statements_of(getattr(loop.node, "body", ())))
        statement = next(
            (one for one in body if isinstance(one, ast.Expr) and one.value is call), None
        )
        if statement is None or not _goes_back(call, body, loop, level, purity):
            return None
        return _found(call, statement, loop, level)
    return None


def _retains(call: ast.Call) -> bool:
    """Return whether a call is `loss.backward(retain_graph=True)`."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name() | ast.BinOp(), attr="backward"),
            args=[],
            keywords=[ast.keyword(arg="retain_graph", value=ast.Constant(value=True))],
        ):
            return True
    return False


def _goes_back(
    call: ast.Call, body: Sequence[ast.stmt], loop: Loop, level: Level, purity: Purity
) -> bool:
    """Return whether a loss depends on the state that the iteration before gave."""
    nodes = purity.program.all_nodes(loop.node, getattr(loop.node, "body", ()))
    loss = call.func.value if isinstance(call.func, ast.Attribute) else call
    if any(_needs_parts(node, names_in(loss)) for node in nodes):
        return False
    if _uses_gradients(nodes, level, purity) or _may_detach(level):
        return False
    for one in body:
        if not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Call):
            continue
        targets = _targets(one)
        arguments = [*one.value.args, *(word.value for word in one.value.keywords)]
        kept = {name for argument in arguments for name in names_in(argument)} & targets
        if kept and _only_given_here(kept, one, loop, level) and depends_on(loss, targets, nodes):
            return True
    return False


def _needs_parts(node: ast.AST, losses: set[str]) -> bool:
    """Return whether code uses the gradients of one part, or cuts the state from the graph."""
    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Break, ast.Continue)):
        return True
    if not isinstance(node, ast.Attribute):
        return False
    if node.attr in _NEEDS_GRADIENTS:
        return True
    is_of_loss = isinstance(node.value, ast.Name) and node.value.id in losses
    return node.attr in _DETACHES and not is_of_loss


def _uses_gradients(nodes: Sequence[ast.AST], level: Level, purity: Purity) -> bool:
    """Return whether the loop calls functions of the program that use gradients or detach."""
    words = _NEEDS_GRADIENTS | _DETACHES
    called = (
        purity.program.called(node, level.place) for node in nodes if isinstance(node, ast.Call)
    )
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in words
        for one in called
        if isinstance(one, Place)
        for inner in one.function.nodes
    )


def _may_detach(level: Level) -> bool:
    """Return whether a class of the file may cut the state from the graph."""
    methods = (one for one in level.function.module.every() if one.owner is not None)
    return any(
        isinstance(node, ast.Attribute) and node.attr in _DETACHES
        for method in methods
        for node in method.nodes
    )


def _targets(statement: ast.Assign) -> set[str]:
    """Return the names that a statement gives values."""
    return {
        node.id
        for target in statement.targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _only_given_here(names: set[str], statement: ast.Assign, loop: Loop, level: Level) -> bool:
    """Return whether only one statement of a loop gives names their values."""
    lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    return all(
        one.line in lines
        for name in names
        for one in level.function.assigned.get(name, ())
        if loop.first <= one.line <= loop.last
    )


def _found(call: ast.Call, statement: ast.Expr, loop: Loop, level: Level) -> CostlyOption | None:
    name = next(_unused(level), "")
    if not name or not isinstance(call.func, ast.Attribute):
        return None
    code = {
        "before": f"{name} = 0.0",
        "new": f"{name} = {name} + {ast.unparse(call.func.value)}",
        "after": f"{name}.backward()",
    }
    return rewritten_loop("backward_through_all_parts", level, call, statement, loop, code)


def _unused(level: Level) -> Iterator[str]:
    yield from (one for one in _NAMES if not level.function.knows(one))
