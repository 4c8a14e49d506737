"""Finds functions that a loop calls without `jax.jit`, and whose parts JAX compiles each time.

JAX compiles the loops of `jax.lax` (`scan`, `while_loop`, `cond`) also outside of `jax.jit`. If the
program gives them a new function in each call, JAX compiles them again in each call. Under one
`jax.jit`, all of them are compiled once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import has_jit, names_in
from teho.source.stack import Level

__all__ = ["find_unjitted"]

_COMPILES = lazy_pattern(r"/jax/_src/(compiler|pjit|interpreters/(mlir|pxla|partial_eval))\b")
_OWN_LOOPS = lazy_pattern(r"/jax/_src/lax/control_flow/")
_JIT = lazy_pattern(r"\b(jit|pmap|filter_jit)\b")
_LEAST_ITERATIONS = 3
_DEEPEST = 4
_TRACED = lazy_pattern(r"(jax|optax|flax|chex|equinox|functools|operator)(\.|$)")
"""Libraries whose functions JAX can trace."""
_BUILTINS = frozenset(
    (
        *("sum", "len", "zip", "enumerate", "tuple", "list", "dict", "range", "isinstance"),
        *("reversed", "getattr", "abs", "map", "slice"),
    )
)
_NEEDS_NUMBERS = frozenset(("item", "tolist", "block_until_ready", "append", "extend", "add"))
_OF_ARRAYS = frozenset(
    (
        *("items", "values", "keys", "reshape", "sum", "mean", "astype", "at", "dot", "min", "max"),
        *("squeeze", "ravel", "transpose", "apply_gradients", "replace", "_replace", "std", "var"),
    )
)
_ENDS = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.If, ast.IfExp),
    *(ast.While, ast.Assert, ast.Try, ast.Raise, ast.With, ast.Delete, ast.JoinedStr),
)
"""Statements that a function which JAX traces may not have, or that may depend on a number."""


def find_unjitted(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the function on a stack that `jax.jit` should compile as a whole.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if not any(_COMPILES.search(one.file) for one in frames):
        return None
    if not any(_OWN_LOOPS.search(one.file) for one in frames):
        return None
    for number, level in enumerate(levels[:-1]):
        call, inner = level.node, levels[number + 1]
        if not isinstance(call, ast.Call) or inner.caller or not level.loops():
            continue
        called = purity.program.called(call, level.place)
        is_inner = isinstance(called, Place) and called.function is inner.function
        is_long = any(may_iterate(one, level.function, _LEAST_ITERATIONS) for one in level.loops())
        if not isinstance(called, Place) or not is_inner or not is_long:
            continue
        if _uses_jit(level) or _uses_jit(inner):
            return None  # why JAX compiles again is then not known
        if _takes_arrays(call, level) and _can_be_traced(called, purity, 0):
            return _found(called, inner)
        return None
    return None


def _uses_jit(level: Level) -> bool:
    """Return whether a file compiles any function with JAX."""
    return any(_JIT.search(ast.unparse(one)) for one in _names(level.function.module))


def _names(module: Function) -> Iterator[ast.expr]:
    """Yield the names and attributes of a file, also those of decorators."""
    for node in ast.walk(module.node):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node


def _takes_arrays(call: ast.Call, level: Level) -> bool:
    """Return whether the arguments of a call may be arrays, and no numbers that give a shape."""
    arguments = [*call.args, *(word.value for word in call.keywords)]
    if any(isinstance(one, ast.Starred) for one in arguments) or not all(
        word.arg for word in call.keywords
    ):
        return False
    return not any(_is_number(one, level.function) for one in arguments)


def _is_number(node: ast.expr, function: Function) -> bool:
    """Return whether an argument is a whole number, a text or a function: JAX needs an array."""
    match node:
        case ast.Constant(value=value):
            return not isinstance(value, float)
        case ast.Lambda():
            return True
        case ast.Name(id=name):
            found = assigned_value(name, function)
            if found is not None:
                return isinstance(found[0], ast.Constant)
            if name in function.inner or name in function.module.inner:
                return True
            loops = (one.loop for one in function.assigned.get(name, ()) if one.loop is not None)
            return any(_counts(one.iterable) for one in loops)
    return False


def _counts(iterable: ast.expr | None) -> bool:
    return isinstance(iterable, ast.Call) and root_name(iterable.func) in ("range", "enumerate")


def _can_be_traced(place: Place, purity: Purity, depth: int) -> bool:
    """Return whether JAX can certainly trace a function: it computes, and does nothing else."""
    function = place.function
    node = function.node
    if not isinstance(node, ast.FunctionDef) or function.owner is not None or depth > _DEEPEST:
        return False
    if node.args.vararg or node.args.kwarg or has_jit(function) or node.decorator_list:
        return False
    return all(_is_traceable(one, place, purity, depth) for one in function.nodes)


def _is_traceable(node: ast.AST, place: Place, purity: Purity, depth: int) -> bool:
    if isinstance(node, _ENDS):
        return False
    function = place.function
    match node:
        case ast.Attribute(ctx=ast.Store()):
            return False
        case ast.Subscript(value=value, ctx=ast.Store()):
            return root_name(value) in function.assigned
        case ast.For(iter=iterable):
            return not (_counts(iterable) and names_in(iterable) & set(function.params))
        case ast.Call():
            return _is_traceable_call(node, place, purity, depth)
    return True


def _is_traceable_call(call: ast.Call, place: Place, purity: Purity, depth: int) -> bool:
    called = purity.program.called(call, place)
    if isinstance(called, Place):
        return _can_be_traced(called, purity, depth + 1)
    if isinstance(called, str):
        return called in _BUILTINS or bool(_TRACED.match(called))
    if called is not None:
        return False
    name = dotted_name(call.func)
    first, _, rest = name.partition(".")
    if first in place.function.params:  # a model is not an array
        return rest.rpartition(".")[2] in _OF_ARRAYS
    return not (isinstance(call.func, ast.Attribute) and call.func.attr in _NEEDS_NUMBERS)


def _found(called: Place, inner: Level) -> CostlyOption:
    function = called.function
    line = getattr(function.node, "lineno", 0)
    jax = "" if function.module.imports.get("jax") == "jax" else "`import jax`, and "
    return CostlyOption(
        name="jax_step_not_compiled",
        at=Frame(called.path, function.name, line, f"def {function.name}"),
        lines=(inner.frame,),
        words={
            "function": function.name,
            "jax": jax,
        },
    )
