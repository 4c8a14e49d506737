"""Finds loops that resize the embeddings of a language model for each new token.

Each call of `resize_token_embeddings` copies the whole matrix, and computes the mean and the
covariance of all old rows to draw the new ones. One call after the loop does this once.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.source.counts import may_iterate
from teho.source.parsed import dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import rewritten_loop, statements_of
from teho.source.stack import Level

__all__ = ["find_resized_embeddings"]

_METHOD = "resize_token_embeddings"
_LEAST_TOKENS = 5


def find_resized_embeddings(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that resizes the embeddings in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    call = level.node
    loop = next((one for one in reversed(level.loops()) if one.is_statement), None)
    if not isinstance(call, ast.Call) or loop is None or not isinstance(loop.node, ast.For):
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr != _METHOD:
        return None
    if not _is_length(call) or not may_iterate(loop, level.function, _LEAST_TOKENS):
        return None
    body = list(statements_of(loop.node.body))
    statement = next((one for one in body if isinstance(one, ast.Expr) and one.value is call), None)
    if (
        statement is None
        or len(body) < 2
        or not _is_only_resized(method.value, call, loop.node, level, purity)
    ):
        return None
    return rewritten_loop(
        "embeddings_resized_again", level, call, statement, loop, {"after": ast.unparse(statement)}
    )


def _is_length(call: ast.Call) -> bool:
    """Return whether the new size is the number of tokens of a tokenizer, after any iteration."""
    match call.args:
        case [ast.Call(func=ast.Name("len"), args=[tokenizer])] if dotted_name(tokenizer):
            return True
    return False


def _is_only_resized(
    model: ast.expr, call: ast.Call, loop: ast.For, level: Level, purity: Purity
) -> bool:
    """Return whether the loop uses the model for nothing else."""
    name = dotted_name(model)
    if not name:
        return False
    here = {id(inner) for inner in ast.walk(call.func)}
    is_local = level.function.binds(root_name(model))
    for node in purity.program.all_nodes(loop, loop.body):
        match node:
            case ast.Return() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.Break():
                return False
            case ast.Name(id=used) if used == root_name(model) and id(node) not in here:
                return False
            case ast.Call() if not is_local and isinstance(
                purity.program.called(node, level.place), Place
            ):
                return False  # it may use the model too
    return True
