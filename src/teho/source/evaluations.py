"""Functions of a program that only evaluate a model: they compute a score without gradients."""

from __future__ import annotations

import ast

from teho.source.changes import stored
from teho.source.parsed import dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity

__all__ = ["evaluates"]

_WITHOUT_GRADIENTS = frozenset(("no_grad", "inference_mode"))
_MODES = frozenset(("eval", "train"))
"""Methods that only say how a model computes."""


def evaluates(call: ast.Call, at: Place, purity: Purity) -> bool:
    """Return whether a call only evaluates a model.

    The function calls models that it gets as arguments, inside `torch.no_grad()`. Apart from that,
    it is pure. Without the call, the training is the same, except for random numbers.

    Args:
        call: the call.
        at: the function that it is in.
        purity: the program.
    """
    place = purity.program.called(call, at)
    if not isinstance(place, Place):
        return False
    function = place.function
    if not isinstance(function.node, ast.FunctionDef) or function.outer_names:
        return False
    decorators = [_last_name(one) for one in function.node.decorator_list]
    if any(name not in _WITHOUT_GRADIENTS for name in decorators):
        return False
    blocks = [node for node in function.nodes if _has_no_gradients(node)]
    if not decorators and not blocks:
        return False
    without = {id(inner) for block in blocks for inner in ast.walk(block)}
    for node in function.nodes:
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        if not all(purity.is_new(root_name(one), function) for one in stored(node)):
            return False
        if isinstance(node, ast.Call) and not (
            _last_name(node) in _WITHOUT_GRADIENTS
            or purity.is_pure(node, place)
            or _is_of_model(node, place, is_free=bool(decorators) or id(node) in without)
        ):
            return False
    return True


def _is_of_model(call: ast.Call, place: Place, *, is_free: bool) -> bool:
    """Return whether a call is one of a model that the function gets: `model(x)`."""
    params = place.function.params
    if isinstance(call.func, ast.Attribute) and call.func.attr in _MODES and not call.args:
        return root_name(call.func) in params
    return is_free and dotted_name(call.func) in params


def _has_no_gradients(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any(
        _last_name(one.context_expr) in _WITHOUT_GRADIENTS for one in node.items
    )


def _last_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else root_name(target)
