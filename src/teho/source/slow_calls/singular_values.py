"""Finds decompositions of weights of which a training uses only the largest singular value.

`torch.linalg.matrix_norm(weight, ord=2)` computes all singular values. A few steps of a power
iteration give the largest one: for a matrix of 512 x 4096 random numbers, 10 steps needed 5 ms
instead of 428 ms on one core. The value was 3 % too small. For such a matrix, many singular values
are nearly equal. If one value is clearly the largest, the difference is smaller.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, dotted_name
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import imported_name
from teho.source.stack import Level

__all__ = ["find_largest_singular_value"]

_NORM = "torch.linalg.matrix_norm"
_VALUES = frozenset(("torch.linalg.svdvals",))
_DECOMPOSITIONS = frozenset(("torch.linalg.svd", "torch.svd"))
_PARTS = frozenset(
    ("parameters", "named_parameters", "modules", "named_modules", "children", "items", "values")
)
_SAME = frozenset(("zip", "enumerate", "list", "reversed"))


def find_largest_singular_value(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that decomposes a weight for its largest singular value.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or not call.args:
        return None
    matrix = call.args[0]
    old = _largest(call, level, purity)
    if old is None or not _is_weight(matrix, level.function):
        return None
    if not any(one.loops() for one in levels) or not _is_training(level.function):
        return None
    torch = imported_name("torch", level.function, "torch")
    return CostlyOption(
        name="largest_singular_value",
        at=Frame(level.frame.file, level.frame.function, call.lineno, level.file.text_of(call)),
        lines=(level.frame,),
        words={
            "file": level.frame.file.rpartition("/")[2],
            "line": str(old.lineno),
            "old": level.file.text_of(old),
            "new": f"{torch}.svd_lowrank({ast.unparse(matrix)}, q=1, niter=10)[1][0]",
        },
    )


def _is_training(function: Function) -> bool:
    """Return whether a file trains a model: its weights then change a little in each step."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "backward"
        for node in ast.walk(function.module.node)
    )


def _largest(call: ast.Call, level: Level, purity: Purity) -> ast.expr | None:
    """Return the expression that gives the largest singular value; None: it gives more."""
    called = purity.program.called(call, level.place)
    if called == _NORM:
        return call if _is_two(call) else None
    if called in _VALUES:
        return _first_of(call, level.function)
    if called not in _DECOMPOSITIONS:
        return None
    for node in level.function.nodes:
        match node:
            case ast.Attribute(value=value, attr="S") if value is call:
                return _first_of(node, level.function)
            case ast.Subscript(value=value, slice=ast.Constant(value=1)) if value is call:
                return _first_of(node, level.function)
    return None


def _is_two(call: ast.Call) -> bool:
    """Return whether a norm is the largest singular value, of one matrix."""
    words = {word.arg: word.value for word in call.keywords}
    if set(words) - {"ord"} or len(call.args) > 2:
        return False
    order = words.get("ord", call.args[1] if len(call.args) > 1 else None)
    return isinstance(order, ast.Constant) and order.value == 2 and order.value is not True


def _first_of(values: ast.expr, function: Function) -> ast.expr | None:
    """Return the expression that uses only the largest of some singular values."""
    for node in function.nodes:
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=0)) if value is values:
                return node
            case ast.Call(
                func=ast.Attribute(value=value, attr="max" | "amax"), args=[], keywords=[]
            ) if value is values:
                return node
    return None


def _is_weight(node: ast.expr, function: Function) -> bool:
    """Return whether an expression is the same parameter of a model in each step."""
    if isinstance(node, ast.Attribute):
        return node.attr == "weight" and bool(dotted_name(node))
    if not isinstance(node, ast.Name):
        return False
    found = assigned_value(node.id, function)
    if found is not None:
        value = found[0]
        return isinstance(value, ast.Attribute) and value.attr == "weight"
    given = function.assigned.get(node.id, ())
    return bool(given) and all(
        one.loop is not None and one.value is not None and _are_parts(one.value) for one in given
    )


def _are_parts(node: ast.expr) -> bool:
    """Return whether a loop goes through parts of a model: `self.weights`, `m.parameters()`."""
    match node:
        case ast.Name() | ast.Attribute():
            return bool(dotted_name(node))
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _PARTS
        case ast.Call(func=ast.Name(id=name), args=args) if name in _SAME:
            return all(map(_are_parts, args))
    return False
