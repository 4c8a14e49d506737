"""Finds calls of a function without `jax.jit` that the program compiles for another use.

A training often compiles the gradient of its loss, `jax.jit(jax.value_and_grad(loss))`, and calls
`loss` itself for the validation. There, Python starts each operation alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, dotted_name
from teho.source.program import Place, Program
from teho.source.slow_calls.loop_parts import has_jit, names_in
from teho.source.stack import Level

__all__ = ["find_eager_function"]

_JAX = lazy_pattern(r"/(jax|flax|optax|equinox|haiku)/")
_JIT = lazy_pattern(r"(jax\.)?(jit|pmap)|(equinox|eqx)\.filter_jit|nnx\.jit")
_LEAST_CALLS = 3


def find_eager_function(
    levels: Sequence[Level], frames: Sequence[Frame], program: Program
) -> CostlyOption | None:
    """Return the call on a stack of a function that the program compiles elsewhere.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        program: the files of the program.
    """
    if not any(_JAX.search(one.file) for one in frames):
        return None
    for number, (level, inner) in enumerate(pairwise(levels)):
        if _JAX.search(level.caller) or has_jit(level.function):
            return None  # JAX only traces it
        call = level.node
        called = program.called(call, level.place) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(called, Place) or inner.caller:
            continue
        if called.function is not inner.function or called.path != level.place.path:
            continue
        jit = next(_compiled(called.function), None)
        if jit is not None and not has_jit(called.function):
            is_again = _is_called_again(called.function, levels[: number + 1])
            return _found(call, called.function, jit, level) if is_again else None
    return None


def _is_called_again(function: Function, levels: Sequence[Level]) -> bool:
    """Return whether a loop calls a function that is defined before the loop.

    A function that each iteration defines again would be compiled again too.
    """
    line = getattr(function.node, "lineno", 0)
    own = (number for number, one in enumerate(levels) if one.function is function.parent)
    return any(
        may_iterate(loop, level.function, _LEAST_CALLS) and not loop.first <= line <= loop.last
        for level in levels[next(own, 0) :]
        for loop in level.loops()
    )


def _compiled(function: Function) -> Iterator[ast.Call]:
    """Yield the calls that compile a function or its gradient, with all arguments as arrays."""
    around = function.parent
    for node in ast.walk(around.node) if around is not None else ():
        if not isinstance(node, ast.Call) or not _JIT.fullmatch(dotted_name(node.func)):
            continue
        is_of_function = any(function.name in names_in(one) for one in node.args)
        if is_of_function and not node.keywords and function.owner is None:
            yield node


def _found(call: ast.Call, function: Function, jit: ast.Call, level: Level) -> CostlyOption:
    frame = level.frame
    return CostlyOption(
        name="jax_called_without_jit",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "function": function.name,
            "after": str(getattr(function.node, "end_lineno", 0)),
            "jit": ast.unparse(jit.func),
        },
    )
