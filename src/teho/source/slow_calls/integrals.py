"""Finds integrals of one function that differ only in their upper limit.

A loop calls `scipy.integrate.quad` for each limit. But one integral on a grid gives all of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_integral"]

_QUAD = lazy_pattern(r"scipy\.integrate\.(_?quadpack(_py)?\.)?quad")
_INFINITE = lazy_pattern(r"\binf\b|\bInf\b|infty|Infinity", re.IGNORECASE)
_VECTORIZE = lazy_pattern(r"/numpy/lib/_?function_base")
"""`np.vectorize` calls a function for each item of an array."""
_NONE = ast.Tuple(elts=[], ctx=ast.Load())
_LEAST_INTEGRALS = 100
"""With fewer integrals, a grid saves little."""


def find_integral(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call of `quad` on a stack of which only the upper limit differs in a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    quads = (
        (number, level, level.node)
        for number, level in enumerate(levels)
        if isinstance(level.node, ast.Call) and _is_quad(level.node, level, purity)
    )
    number, level, call = next(quads, (0, levels[0], None))
    if call is None:
        return None
    words = {word.arg: word.value for word in call.keywords if word.arg}
    given = dict(zip(("func", "a", "b", "args"), call.args, strict=False)) | words
    if not {"func", "a", "b"} <= given.keys() or _INFINITE.search(ast.unparse(given["a"])):
        return None
    result = _result(call, level)
    if result is None or not isinstance(given.get("args", _NONE), ast.Tuple):
        return None
    function = _parts_of_function(given["func"], level, purity)
    rest = [value for name, value in given.items() if name not in {"func", "b"}]
    if function is None:
        return None
    for at, loop in _loops(levels, number):
        inputs = [*function, *rest]
        if _is_same(levels, number, at, loop, inputs, purity) and not _is_same(
            levels, number, at, loop, [given["b"]], purity
        ):
            limits = _limits(level, loop, given["b"]) if at == number else ""
            return _found(level, levels[at], loop, call, given, limits, result)
    return None


def _is_quad(call: ast.Call, level: Level, purity: Purity) -> bool:
    called = purity.program.called(call, level.place)
    is_quad = isinstance(called, str) and _QUAD.fullmatch(called) is not None
    has_stars = any(isinstance(one, ast.Starred) for one in call.args)
    return is_quad and not has_stars


def _result(call: ast.Call, level: Level) -> tuple[str, str] | None:
    """Return the code that uses the integral, and the begin of the code in its place.

    None: the program may also use the estimate of the error.
    """
    nodes = list(ast.walk(level.function.node))
    for node in nodes:
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=0)) if value is call:
                return level.file.text_of(node), ""
            case ast.Assign(targets=[ast.Tuple(elts=[target, ast.Name(id=error)])], value=value):
                reads = (one for one in nodes if isinstance(one, ast.Name) and one.id == error)
                is_read = any(isinstance(one.ctx, ast.Load) for one in reads)
                if value is call and not is_read:
                    return level.file.text_of(node), f"{ast.unparse(target)} = "
    return None


def _parts_of_function(given: ast.expr, level: Level, purity: Purity) -> list[ast.expr] | None:
    """Return what a function depends on; None: it may change something, or this is not clear."""
    if isinstance(given, ast.Lambda):
        names: list[ast.expr] = [
            ast.Name(one.arg, ast.Store())
            for one in ast.walk(given.args)
            if isinstance(one, ast.arg)
        ]
        binds = ast.comprehension(
            target=ast.Tuple(elts=names, ctx=ast.Store()),
            iter=ast.Tuple(elts=[], ctx=ast.Load()),
            ifs=[],
            is_async=0,
        )
        return [ast.ListComp(elt=given.body, generators=[binds])]
    if isinstance(given, ast.Attribute) and root_name(given) == "self":
        owner = level.function.owner
        name = f"{owner.name}.{given.attr}" if owner is not None else ""
        method = level.function.module.inner.get(name)
        is_pure = method is not None and purity.is_pure_function(
            level.place._replace(function=method)
        )
        return [given.value] if is_pure and isinstance(given.value, ast.Name) else None
    named = purity.program.named(given.id, level.place) if isinstance(given, ast.Name) else None
    is_pure = isinstance(named, Place) and purity.is_pure_function(named)
    if not isinstance(given, ast.Name) or not is_pure:
        return None
    inner = level.function.inner.get(given.id)
    inside = ast.walk(inner.node) if inner is not None else ()
    read = {one.id for one in inside if isinstance(one, ast.Name)} - {given.id}
    around = sorted(name for name in read if level.function.binds(name))
    return [given, *(ast.Name(name, ast.Load()) for name in around)]


def _loops(levels: Sequence[Level], number: int) -> Iterator[tuple[int, Loop]]:
    """Yield the loops around a level, each with the number of its level, the innermost first."""
    for at in range(number, -1, -1):
        level = levels[at]
        for loop in reversed(level.loops()):
            if may_iterate(loop, level.function, _LEAST_INTEGRALS):
                yield at, loop
        if level.is_called_again or _VECTORIZE.search(level.caller):
            yield at, level.as_loop()
        if level.caller:
            return


def _is_same(
    levels: Sequence[Level],
    number: int,
    at: int,
    loop: Loop,
    inputs: list[ast.expr],
    purity: Purity,
) -> bool:
    changed = list(levels)
    changed[number] = levels[number]._replace(node=ast.Tuple(elts=inputs, ctx=ast.Load()))
    return Inputs(changed, at, loop, purity).of_call(number) is Value.SAME


def _limits(level: Level, loop: Loop, limit: ast.expr) -> str:
    """Return the collection of all limits as the function has it; empty: not clear."""
    items = ""
    match limit:
        case ast.Subscript(value=ast.Name(id=items), slice=ast.Name()):
            limit = limit.slice
    if not isinstance(limit, ast.Name):
        return ""
    for one in level.function.assigned.get(limit.id, []):
        if one.loop == loop and one.value is not None:
            is_call = isinstance(one.value, ast.Call)
            return items or ("" if is_call else ast.unparse(one.value))
    return ""


def _found(
    level: Level,
    outer: Level,
    loop: Loop,
    call: ast.Call,
    given: dict[str, ast.expr],
    limits: str,
    result: tuple[str, str],
) -> CostlyOption:
    frame = level.frame
    name = ast.unparse(given["func"])
    name = f"({name})" if isinstance(given["func"], ast.Lambda) else name
    others = f", *{ast.unparse(given['args'])}" if "args" in given else ""
    words = {
        "begin": ast.unparse(given["a"]),
        "old": result[0],
        "new": f"{result[1]}np.interp({ast.unparse(given['b'])}, grid, table)",
        "value": f"{name}(x{others})",
        "loop": f"{outer.frame.file.rpartition('/')[2]}:{loop.line}",
    }
    if limits:
        words["limits"] = limits
    return CostlyOption(
        name="integrals_to_limits" if limits else "integrals_to_any_limits",
        at=Frame(frame.file, frame.function, call.lineno, ast.unparse(call)),
        lines=(frame,),
        words=words,
    )
