"""Finds draws from many weights of which each step changes only a few, as in prioritised replay.

`rng.choice(n, 64, p=weights / weights.sum())` goes through all weights, and so does computing them.
A tree with the sums of the weights needs, for each draw and each change, as many additions as it
has levels: 20 for a million weights.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.changes import named_values, stored
from teho.source.parsed import Function, root_name
from teho.source.slow_calls.loop_parts import imported_name, loads_of, names_in
from teho.source.stack import Level

__all__ = ["find_weighted_draw"]

_DEEPEST = 4
_MASKS = lazy_pattern(r"\[\w*(mask|done|valid|keep|slice)\w*\]")
"""Indexes that may be no numbers of elements."""


class _Draw(NamedTuple):
    """A call of `choice` with weights."""

    call: ast.Call
    total: ast.expr
    """The number of elements: the first argument."""
    size: ast.expr
    """The number of drawn values."""
    weights: ast.expr


class _Stores(NamedTuple):
    """Where the program changes an array with weights."""

    made: ast.Assign
    """The statement of `__init__` that makes it."""
    changed: Sequence[ast.Assign]
    """The statements that change it: `self.priority[index] = value`."""


def find_weighted_draw(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the draw on a stack that goes through all weights, of which few change.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        if level.function.owner is None or not any(one.loops() for one in levels[: number + 1]):
            continue
        draws = [one for node in level.function.nodes if (one := _draw(node)) is not None]
        if len(draws) == 1 and _is_for(draws[0], level):
            return _of_draw(draws[0], level)
    return None


def _draw(node: ast.AST) -> _Draw | None:
    match node:
        case ast.Call(
            func=ast.Attribute(attr="choice"),
            args=[total, size],
            keywords=[ast.keyword(arg="p", value=weights)],
        ):
            return _Draw(node, total, size, weights)
    return None


def _is_for(draw: _Draw, level: Level) -> bool:
    """Return whether a stack is in the draw, or in a statement that computes its weights."""
    line, function = level.frame.line, level.function
    wanted, lines = names_in(draw.weights), {draw.call.lineno}
    for _ in range(_DEEPEST):
        given = [one for name in wanted for one in function.assigned.get(name, ())]
        lines |= {one.line for one in given}
        wanted = {name for one in given if one.value for name in names_in(one.value)}
    return line in lines


def _of_draw(draw: _Draw, level: Level) -> CostlyOption | None:
    function = level.function
    if isinstance(draw.size, ast.Constant) and draw.size.value is None:
        return None
    if ast.unparse(draw.size) == ast.unparse(draw.total):
        return None  # the draws need as much time as all weights
    power = _power(draw.weights, function)
    if power is None:
        return None
    array, exponent = power
    if not _is_only_for(draw, function):
        return None
    stores = _stores(array.attr, function)
    if stores is None:
        return None
    return _found(draw, array, exponent, stores, level)


def _power(node: ast.expr, function: Function, depth: int = 0) -> tuple[ast.Attribute, str] | None:
    """Return the array of weights, and what is added for a power: ` ** ALPHA`."""
    match node:
        case ast.Name(id=name) if depth < _DEEPEST:
            given = function.assigned.get(name, ())
            value = given[0].value if len(given) == 1 else None
            return _power(value, function, depth + 1) if value is not None else None
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Call(func=ast.Attribute(attr="sum"))):
            return _power(left, function, depth)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            inner = _power(left, function, depth)
            is_free = not any(isinstance(one, ast.Call) for one in ast.walk(right))
            if inner is None or inner[1] or not is_free or names_in(right) & set(function.assigned):
                return None
            return inner[0], f" ** {ast.unparse(right)}"
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, step=None)):
            return _power(inner, function, depth)
        case ast.Attribute(value=ast.Name(id="self")):
            return node, ""
    return None


def _is_only_for(draw: _Draw, function: Function) -> bool:
    """Return whether the function needs the weights only for the draw."""
    inside = {id(one) for one in ast.walk(draw.call)}
    names = names_in(draw.weights)
    for _ in range(_DEEPEST):
        values = [
            value
            for node in function.nodes
            for target, value in named_values(node)
            if root_name(target) in names and isinstance(target, ast.Name)
        ]
        inside |= {id(one) for value in values for one in ast.walk(value)}
        names |= {name for value in values for name in names_in(value)}
    own = [name for name in names if name in function.assigned]
    return all(id(one) in inside for name in own for one in loads_of(name, function.nodes))


def _stores(name: str, function: Function) -> _Stores | None:
    """Return where the program makes and changes an array; None: it changes it elsewhere too."""
    made: list[ast.Assign] = []
    changed: list[ast.Assign] = []
    for other in function.module.every():
        for node in other.nodes:
            targets = [
                one
                for one in (*stored(node), *getattr(node, "targets", ()))
                if any(isinstance(it, ast.Attribute) and it.attr == name for it in ast.walk(one))
            ]
            if not targets:
                continue
            match node:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))]):
                    if other.name.rpartition(".")[2] != "__init__":
                        return None
                    made.append(node)
                case ast.Assign(
                    targets=[
                        ast.Subscript(value=ast.Attribute(), slice=ast.Name() | ast.Attribute())
                    ]
                ) if not _MASKS.search(ast.unparse(node.targets[0])):
                    changed.append(node)
                case _:
                    return None
    return _Stores(made[0], changed) if len(made) == 1 and changed else None


def _found(
    draw: _Draw, array: ast.Attribute, exponent: str, stores: _Stores, level: Level
) -> CostlyOption | None:
    if not isinstance(draw.call.func, ast.Attribute):
        return None
    frame, file = level.frame, level.file
    np = imported_name("numpy", level.function, "numpy")
    name = ast.unparse(array)
    generator, size = ast.unparse(draw.call.func.value), ast.unparse(draw.size)
    made = (
        f"`self.leaves = 1 << (len({name}) - 1).bit_length()`; "
        f"`self.tree = {np}.zeros(2 * self.leaves)`"
    )
    changed = [_update(one, exponent, np) for one in stores.changed]
    drawn = (
        f"`mass, node = {generator}.random({size}) * self.tree[1], {np}.ones({size}, int)`; "
        "`while node[0] < self.leaves: left = self.tree[2 * node]; right = mass >= left; "
        "mass = mass - left * right; node = 2 * node + right`"
    )
    return CostlyOption(
        name="drawn_from_all_weights",
        at=Frame(frame.file, frame.function, draw.call.lineno, file.text_of(draw.call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "array": name,
            "made": str(stores.made.lineno),
            "tree": made,
            "update": " ".join(changed),
            "line": str(draw.call.lineno),
            "draw": drawn,
            "new": f"{np}.minimum(node - self.leaves, {ast.unparse(draw.total)} - 1)",
        },
    )


def _update(changed: ast.Assign, exponent: str, np: str) -> str:
    """Return the advice for a statement that changes weights."""
    (target,) = changed.targets
    index = ast.unparse(target.slice) if isinstance(target, ast.Subscript) else ""
    return (
        f"After line {changed.lineno}: `node = {np}.atleast_1d({index}) + self.leaves`; "
        f"`self.tree[node] = {np}.atleast_1d({ast.unparse(target)}){exponent}`; "
        "`while node[0] > 1: node = node // 2; "
        "self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]`."
    )
