"""Finds conditions of JAX that compute both branches, because `vmap` calls them.

Under `jax.vmap`, `lax.cond` becomes a selection: both branches are computed for all items, also the
branch that few items need.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, root_name
from teho.source.program import Place, Program
from teho.source.slow_calls.loop_parts import has_jit, imported_name, names_in
from teho.source.stack import Level

__all__ = ["find_mapped_condition"]

_COND = "jax.lax.cond"
_VMAP = "jax.vmap"
_LOOPS = frozenset(("jax.lax.fori_loop", "jax.lax.while_loop", "jax.lax.scan"))
_JIT = ("jax.jit", "equinox.filter_jit")
_READS = frozenset(
    ("float", "int", "bool", "numpy.asarray", "numpy.array", "jax.block_until_ready")
)
_METHODS = frozenset(("item", "block_until_ready", "tolist"))
_DEEPEST = 4


class _Condition(NamedTuple):
    """A condition in a function that `vmap` calls."""

    call: ast.Call
    at: Place
    """The function that only returns the condition."""
    outer: ast.Call
    """`jax.vmap(function)(items)`."""
    mapped: ast.Call
    """`jax.vmap(function)`."""
    where: Place
    """The function with this call."""


def find_mapped_condition(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the condition in a function that a stack runs, and whose branches both run.

    JAX computes in the background, so a stack may also be at the line that reads the result.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call):
        return None
    for one in (call, *_makers(call, level, program)):
        jitted = _jitted(one, level.place, program)
        for condition in _conditions(jitted, program, 0) if jitted is not None else ():
            found = _found(condition, level, program)
            if found is not None:
                return found
    return None


def _makers(call: ast.Call, level: Level, program: Program) -> Iterator[ast.Call]:
    """Yield the calls whose results a call reads: of `float(loss)`, the call that gave `loss`."""
    called = program.called(call, level.place)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if called not in _READS and method not in _METHODS:
        return
    read = call.args[0] if call.args else call.func
    name = root_name(read)
    for node in level.function.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        targets = {
            one.id
            for target in node.targets
            for one in ast.walk(target)
            if isinstance(one, ast.Name)
        }
        if name in targets:
            yield node.value


def _jitted(call: ast.Call, at: Place, program: Program) -> Place | None:
    """Return the function that a call runs compiled as a whole; None: it does not."""
    called = program.called(call, at)
    if isinstance(called, Place):
        return called if has_jit(called.function) else None
    if not isinstance(call.func, ast.Name):
        return None
    found = assigned_value(call.func.id, at.function)
    if found is None or not isinstance(found[0], ast.Call):
        return None
    made, outer = found[0], Place(at.path, found[1])
    if program.called(made, outer) not in _JIT or not made.args:
        return None
    return _function(made.args[0], outer, program)


def _function(node: ast.expr, at: Place, program: Program) -> Place | None:
    if isinstance(node, ast.Lambda):
        return Place(at.path, Function(node, at.function))
    named = program.named(node.id, at) if isinstance(node, ast.Name) else None
    return named if isinstance(named, Place) else None


def _conditions(at: Place, program: Program, depth: int) -> Iterator[_Condition]:
    """Yield the conditions in functions that `vmap` calls in a compiled function."""
    if depth > _DEEPEST:
        return
    for node in at.function.nodes:
        if not isinstance(node, ast.Call):
            continue
        called, mapped = program.called(node, at), node.func
        if isinstance(mapped, ast.Call) and program.called(mapped, at) == _VMAP and mapped.args:
            inner = _function(mapped.args[0], at, program)
            found = _inside(inner, program) if inner is not None else None
            if inner is not None and found is not None:
                yield _Condition(found, inner, node, mapped, at)
        elif isinstance(called, Place):
            yield from _conditions(called, program, depth + 1)


def _inside(at: Place, program: Program) -> ast.Call | None:
    """Return the condition that a function computes for each item, and nothing else."""
    body = at.function.node.body if isinstance(at.function.node, ast.FunctionDef) else []
    texts = [one for one in body if isinstance(one, ast.Expr)]
    rest = [one for one in body if one not in texts]
    if not rest or not all(isinstance(one, ast.Assign) for one in rest[:-1]):
        return None
    match rest[-1]:
        case ast.Return(value=ast.Call(args=[asked, _, _, *given], keywords=[]) as call):
            names = [one.id for one in given if isinstance(one, ast.Name)]
            is_plain = names == at.function.params and len(names) == len(given)
            if is_plain and program.called(call, at) == _COND and _in_full(asked, at):
                return call
    return None


def _in_full(condition: ast.expr, at: Place) -> str:
    """Return a condition as text, of the first parameter only; empty if this is not possible."""
    text = condition
    if isinstance(condition, ast.Name) and condition.id not in at.function.params:
        found = assigned_value(condition.id, at.function)
        if found is None or found[1] is not at.function:
            return ""
        text = found[0]
    names = names_in(text)
    first, *others = at.function.params
    is_own = any(at.function.binds(name) for name in names - {first})
    return "" if first not in names or names & set(others) or is_own else ast.unparse(text)


def _has_loop(branch: ast.expr, at: Place, program: Program) -> bool:
    function = _function(branch, at, program)
    if function is None:
        return False
    nodes = ast.walk(function.function.node)
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return any(program.called(node, function) in _LOOPS for node in calls)


def _found(one: _Condition, level: Level, program: Program) -> CostlyOption | None:
    """Return the option with the code that computes the costly branch only for some items.

    None: not exactly one of the branches has a loop, or the code is not clear.
    """
    file = program.file(one.at.path)
    asked, *branches = one.call.args[:3]
    costs = [_has_loop(branch, one.at, program) for branch in branches]
    if file is None or sorted(costs) != [False, True]:
        return None
    if not all(isinstance(branch, ast.Name) for branch in branches):
        return None
    costly, other = (
        ast.unparse(branch)
        for branch in sorted(branches, key=lambda b: costs[branches.index(b)], reverse=True)
    )
    axes = _axes(one.mapped, len(one.at.function.params))
    given = [ast.unparse(arg) for arg in one.outer.args]
    if axes is None or len(given) != len(axes) or not axes[0] or one.outer.keywords:
        return None
    first = one.at.function.params[0]
    condition = f"jax.vmap(lambda {first}: {_in_full(asked, one.at)})({given[0]})"
    needed = condition if costs[0] else f"~{condition}"
    numpy = imported_name("jax.numpy", one.where.function, "jax.numpy")
    words = "".join(f", {ast.unparse(word)}" for word in one.mapped.keywords)
    some = [f"{arg}[rows]" if axis else arg for arg, axis in zip(given, axes, strict=True)]
    return CostlyOption(
        name="both_branches_computed",
        at=Frame(one.at.path, one.at.function.name, one.call.lineno, file.text_of(one.call)),
        lines=(level.frame,),
        words={
            "costly": costly,
            "function": one.at.function.name,
            "line": str(one.outer.lineno),
            "old": file.text_of(one.outer),
            "rows": f"rows = {numpy}.nonzero({needed}, size=256, fill_value=len({given[0]}))[0]",
            "all": f"every = jax.vmap({other}{words})({', '.join(given)})",
            "part": f"some = jax.vmap({costly}{words})({', '.join(some)})",
            "new": 'every.at[rows].set(some, mode="drop")',
        },
    )


def _axes(mapped: ast.Call, count: int) -> list[bool] | None:
    """Return which arguments `vmap` divides into items, along their first axis."""
    words = {word.arg: word.value for word in mapped.keywords}
    if len(mapped.args) != 1 or not words.keys() <= {"in_axes"}:
        return None
    if "in_axes" not in words:
        return [True] * count
    try:
        axes = ast.literal_eval(words["in_axes"])
    except ValueError:
        return None
    if not isinstance(axes, (tuple, list)) or any(one not in (0, None) for one in axes):
        return None
    return [one == 0 for one in axes]
