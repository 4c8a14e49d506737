"""Whether one step of a recurrence is linear: `h = a * h + b`, with `a` and `b` independent of `h`.

`jax.lax.associative_scan` computes such a recurrence in parallel: n steps need about log2(n)
passes.
"""

from __future__ import annotations

import ast
import copy
from typing import NamedTuple, Union

from teho.source.slow_calls.loop_parts import names_in

__all__ = ["LinearStep", "step_of"]

_MOST_STATEMENTS = 8


class LinearStep(NamedTuple):
    """A step of a linear recurrence: the new state is `factor * state + term`."""

    state: str
    """The parameter with the state."""
    item: str
    """The parameter with the input of the step."""
    factor: ast.expr
    term: ast.expr
    gives_state: bool
    """Whether the output of the step is the new state. False: it has no output."""


_Linear = tuple[Union[ast.expr, None], Union[ast.expr, None]]
"""Factor and term; None is zero."""


def step_of(node: ast.AST) -> LinearStep | None:
    """Return the step that a function of `lax.scan` computes; None if it is not surely linear.

    Args:
        node: a function or a lambda with two parameters: the state, and the input of the step.
    """
    if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return None
    given = node.args
    if len(given.args) != 2 or given.vararg or given.kwonlyargs or given.kwarg or given.defaults:
        return None
    state, item = (one.arg for one in given.args)
    result = _result(node, state)
    match result:
        case ast.Tuple(elts=[new, output]):
            pass
        case _:
            return None
    found = _linear(new, state)
    factor, term = found if found is not None else (None, None)
    if factor is None:
        return None
    is_nothing = isinstance(output, ast.Constant) and output.value is None
    if not is_nothing and ast.dump(output) != ast.dump(new):
        return None
    return LinearStep(state, item, factor, term or ast.Constant(0.0), not is_nothing)


def _result(node: ast.FunctionDef | ast.Lambda, state: str) -> ast.expr | None:
    """Return the result of a function as an expression of its parameters."""
    if isinstance(node, ast.Lambda):
        return node.body
    values: dict[str, ast.expr] = {}
    if node.decorator_list or len(node.body) > _MOST_STATEMENTS:
        return None
    for one in node.body:
        match one:
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = _replaced(value, values)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name() as value):
                whole = _replaced(value, values)
                plain = [each.id for each in names if isinstance(each, ast.Name)]
                if len(plain) < len(names) or value.id == state:
                    return None
                for number, name in enumerate(plain):
                    values[name] = ast.Subscript(whole, ast.Constant(number), ast.Load())
            case ast.Return(value=ast.expr() as value):
                return _replaced(value, values)
            case _:
                return None
    return None


def _replaced(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """Return an expression with the values of some names instead of the names."""

    class Replace(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return copy.deepcopy(values.get(name.id, name))

    replaced: ast.expr = Replace().visit(copy.deepcopy(node))
    return replaced


def _linear(node: ast.expr, state: str) -> _Linear | None:
    """Return the factor and the term of an expression that is linear in the state."""
    if state not in names_in(node):
        return None, node
    match node:
        case ast.Name():
            return ast.Constant(1.0), None
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            found = _linear(inner, state)
            return (_minus(found[0]), _minus(found[1])) if found else None
        case ast.BinOp(left=left, op=(ast.Add() | ast.Sub()) as op, right=right):
            first, second = _linear(left, state), _linear(right, state)
            if first is None or second is None:
                return None
            return _sum(first[0], op, second[0]), _sum(first[1], op, second[1])
        case ast.BinOp(left=left, op=ast.Mult() as op, right=right):
            if state in names_in(left) and state in names_in(right):
                return None
            inner, by = (left, right) if state in names_in(left) else (right, left)
            found = _linear(inner, state)
            return (_times(found[0], op, by), _times(found[1], op, by)) if found else None
        case ast.BinOp(left=left, op=ast.Div() as op, right=right) if state not in names_in(right):
            found = _linear(left, state)
            return (_times(found[0], op, right), _times(found[1], op, right)) if found else None
    return None


def _sum(left: ast.expr | None, op: ast.operator, right: ast.expr | None) -> ast.expr | None:
    if right is None:
        return left
    if left is None:
        return _minus(right) if isinstance(op, ast.Sub) else right
    return ast.BinOp(left, op, right)


def _times(node: ast.expr | None, op: ast.operator, by: ast.expr) -> ast.expr | None:
    if node is None:
        return None
    is_one = isinstance(node, ast.Constant) and node.value == 1
    if is_one and isinstance(op, ast.Mult):
        return by
    return ast.BinOp(node, op, by)


def _minus(node: ast.expr | None) -> ast.expr | None:
    return None if node is None else ast.UnaryOp(ast.USub(), node)
