"""Numbers that the source of a program has, also under a name."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from typing import NamedTuple

from teho.source.parsed import Function, dotted_name
from teho.source.program import Place
from teho.source.purity import SET_UP, Purity

__all__ = ["Number", "number_of"]

_DEEPEST = 6
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class Number(NamedTuple):
    """A number in the source."""

    value: float
    is_sure: bool
    """False: it is a default, and the run may have had another value."""


def number_of(node: ast.AST, at: Place, purity: Purity, depth: int = 0) -> Number | None:
    """Return the number that an expression always has in a run; None if it is not known.

    Args:
        node: the expression.
        at: the function that it is in.
        purity: the program.
        depth: number of names that led to this expression.
    """
    if depth > _DEEPEST:
        return None
    match node:
        case ast.Constant(value=(int() | float()) as value) if not isinstance(value, bool):
            return Number(value, is_sure=True)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            left = number_of(node.left, at, purity, depth + 1)
            right = number_of(node.right, at, purity, depth + 1)
            if left is None or right is None or (_is_division(node) and not right.value):
                return None
            value = _OPERATORS[type(node.op)](left.value, right.value)
            return Number(value, left.is_sure and right.is_sure) if math.isfinite(value) else None
        case ast.Name():
            return _of_name(node.id, at, purity, depth)
        case ast.Attribute():
            return _of_attribute(node, at, purity, depth)
    return None


def _is_division(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.FloorDiv)


def _of_name(name: str, at: Place, purity: Purity, depth: int) -> Number | None:
    function: Function | None = at.function
    while function is not None and not function.binds(name):
        function = function.parent
    if function is None:
        return None
    given = function.assigned.get(name, [])
    if function is not at.function and not purity.is_constant_name(name, at):
        return None
    where = Place(at.path, function)
    if name in function.params:
        default = function.default(name)
        found = number_of(default, where, purity, depth + 1) if default and not given else None
        return found._replace(is_sure=False) if found else None
    if len(given) != 1 or given[0].value is None or given[0].loop is not None:
        return None
    return number_of(given[0].value, where, purity, depth + 1)


def _of_attribute(node: ast.Attribute, at: Place, purity: Purity, depth: int) -> Number | None:
    """Return the number of a setting, such as `args.every` or `self.every`."""
    module = at.function.module
    is_self = dotted_name(node) == f"self.{node.attr}"
    if is_self and purity.is_constant_attribute(node.attr, at):
        values = [
            (value, Place(at.path, function)) for function, value in _of_self(node.attr, module)
        ]
    else:
        values = [(value, Place(at.path, module)) for value in _defaults(node.attr, module)]
    if len(values) != 1:
        return None
    found = number_of(values[0][0], values[0][1], purity, depth + 1)
    return found._replace(is_sure=found.is_sure and is_self) if found else None


def _of_self(name: str, module: Function) -> Iterator[tuple[Function, ast.expr]]:
    """Yield the values that the methods that set up an object give to `self.name`."""
    for function in module.every():
        for node in function.nodes if function.name in SET_UP else ():
            if isinstance(node, ast.Assign) and f"self.{name}" in map(dotted_name, node.targets):
                yield function, node.value


def _defaults(name: str, module: Function) -> Iterator[ast.expr]:
    """Yield the default values of a field of a class, or of an option of the command."""
    for owner in module.classes.values():
        for one in owner.body:
            is_field = isinstance(one, ast.AnnAssign) and dotted_name(one.target) == name
            if isinstance(one, ast.AnnAssign) and is_field and one.value is not None:
                yield one.value
    for function in module.every():
        for call in function.nodes:
            if isinstance(call, ast.Call) and _is_option(call, name):
                yield from (word.value for word in call.keywords if word.arg == "default")


def _is_option(call: ast.Call, name: str) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return False
    texts = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return any(str(text).lstrip("-").replace("-", "_") == name for text in texts)
