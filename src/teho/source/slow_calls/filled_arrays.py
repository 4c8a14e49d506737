"""Finds JAX arrays that a loop fills element by element, outside of `jax.jit`.

An array of JAX cannot be changed: outside of a compiled function, each `x = x.at[i].set(v)` makes a
copy of the whole array. A NumPy array takes the values at their places.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import has_jit, imported_name, loads_of, rewritten_loop
from teho.source.stack import Level

__all__ = ["find_filled_array"]

_JAX = lazy_pattern(r"/(jax|flax|equinox|haiku|optax|diffrax)/")
_LEAST_ITERATIONS = 30


def find_filled_array(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the statement on a stack that copies a whole array of JAX to change one part.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    call = level.node
    array = _array(call)
    if not array or not isinstance(call, ast.Call):
        return None
    if any(_JAX.search(one.caller) or has_jit(one.function) for one in levels):
        return None  # JAX traces the loop, and compiles it
    statement = _statement(array, call, level)
    loop = _loop(array, level, purity) if statement is not None else None
    if statement is None or loop is None:
        return None
    target = call.func.value if isinstance(call.func, ast.Attribute) else call
    index = target.slice if isinstance(target, ast.Subscript) else target
    numpy = imported_name("numpy", level.function, "numpy")
    jax = imported_name("jax.numpy", level.function, "jax.numpy")
    code = {
        "before": f"{array} = {numpy}.array({array})",
        "new": f"{array}[{ast.unparse(index)}] = {ast.unparse(call.args[0])}",
        "after": f"{array} = {jax}.asarray({array})",
    }
    return rewritten_loop("jax_array_filled", level, call, statement, loop, code)


def _array(node: ast.expr | None) -> str:
    """Return the name of the array of `x.at[i].set(v)`; empty if it is another expression."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="at")),
                attr="set",
            ),
            args=[ast.expr()],
            keywords=[],
        ):
            return name
    return ""


def _statement(array: str, call: ast.Call, level: Level) -> ast.Assign | None:
    """Return the statement that gives the array its new value."""
    for node in level.function.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name == array and value is call:
                    return node
    return None


def _loop(array: str, level: Level, purity: Purity) -> Loop | None:
    """Return the outermost loop that only fills the array; None: there is none.

    The array must have a value before the loop, and the loop must not read it.
    """
    function = level.function
    given = function.assigned.get(array, ())
    for loop in level.loops():
        node = loop.node
        if not isinstance(node, (ast.For, ast.While)):
            continue
        begin = min((one.line for one in given), default=loop.line)
        is_known = array in function.params or begin < loop.line
        inside = [one for one in given if loop.line <= one.line <= loop.last]
        nodes = purity.program.all_nodes(node, node.body)
        if not is_known or len(inside) != 1 or len(loads_of(array, nodes)) != 1:
            continue
        if any(isinstance(one, (ast.Return, ast.Yield, ast.YieldFrom)) for one in nodes):
            continue
        if isinstance(node, ast.While) and loads_of(array, list(ast.walk(node.test))):
            continue
        if _may_be_read(array, function):
            return None
        inner = [one for one in level.loops() if one.line >= loop.line]
        if any(may_iterate(one, function, _LEAST_ITERATIONS) for one in inner):
            return loop
    return None


def _may_be_read(array: str, function: Function) -> bool:
    """Return whether other functions may read the array while the loop fills it."""
    own = {id(one) for one in function.nodes}
    others = [one for one in ast.walk(function.node) if id(one) not in own]
    return array in function.outer_names or bool(loads_of(array, others))
