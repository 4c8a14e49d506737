"""Finds results of worker processes from which the program only computes a smaller value.

An example is `for frames in pool.imap(simulate, cases): curve = mean_curve(frames)`: each worker
sends a whole array back, and the program needs only what `mean_curve` returns. The stack shows that
the program waits for a result, or gets it. The source shows that it uses the result only once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.parsed import dotted_name
from teho.source.stack import Level

__all__ = ["find_late_reduction"]

_MAPS = frozenset(("map", "imap", "imap_unordered", "map_unordered"))
_BESIDE = frozenset(("zip", "enumerate", "tqdm", "list", "iter"))
_KEEPS = frozenset(
    ("append", "add", "extend", "update", "print", "len", "list", "tuple", "save", "write", "dump")
)
"""Functions that keep or write a whole result."""
_MADE_AND_USED = 2
"""The loop gives the name a value, and uses it once."""


def find_late_reduction(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the call that reduces a result of a worker; None: there is none.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    for node in level.function.nodes:
        if not isinstance(node, ast.For) or node.lineno != level.frame.line:
            continue
        for name, mapped in _results(node.target, node.iter):
            uses = [one for one in level.function.nodes if _is_name(one, name.id)]
            calls = [call for one in node.body for call in _reductions(one, name.id)]
            if len(uses) != _MADE_AND_USED or len(calls) != 1:
                continue
            (call,) = calls
            frame = level.frame
            return CostlyOption(
                name="results_reduced_late",
                at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
                lines=(frame,),
                words={
                    "change": _change(mapped, dotted_name(call.func), level),
                    "reduces": dotted_name(call.func),
                    "call": level.file.text_of(call),
                    "name": name.id,
                },
            )
    return None


def _change(function: str, reduces: str, level: Level) -> str:
    """Return what to write in the function of the workers, so that it returns the smaller value."""
    found = level.file.module.inner.get(function)
    nodes = found.nodes if found is not None else ()
    returned = [one for one in nodes if isinstance(one, ast.Return) and one.value is not None]
    if len(returned) == 1 and isinstance(returned[0].value, ast.expr):
        value = level.file.text_of(returned[0].value)
        place = Frame(level.frame.file, function, returned[0].lineno, "").short_place
        return f"at {place}, write `return {reduces}({value})` instead of `return {value}`"
    return f"let `{function}` return `{reduces}(x)` instead of its result `x`"


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _results(target: ast.expr, items: ast.expr) -> Iterator[tuple[ast.Name, str]]:
    """Yield the names of a loop that get results of workers, with the function of the workers."""
    if isinstance(items, ast.Call) and dotted_name(items.func) in _BESIDE:
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        given: Sequence[ast.expr] = items.args
        if dotted_name(items.func) == "enumerate":
            targets = targets[1:]
        for one, part in zip(targets, given, strict=False):
            yield from _results(one, part)
        return
    mapped = _mapped(items)
    if isinstance(target, ast.Name) and mapped:
        yield target, mapped


def _mapped(items: ast.expr) -> str:
    """Return the function that worker processes call for each item; empty: it is not known."""
    if not isinstance(items, ast.Call) or not items.args:
        return ""
    first = items.args[0]
    if isinstance(items.func, ast.Attribute) and items.func.attr in _MAPS:
        return dotted_name(first)
    # `Parallel(n_jobs=8)(delayed(f)(x) for x in items)`
    made = first.elt if isinstance(first, (ast.GeneratorExp, ast.ListComp)) else None
    delayed = made.func if isinstance(made, ast.Call) else None
    if isinstance(delayed, ast.Call) and dotted_name(delayed.func).endswith("delayed"):
        return dotted_name(delayed.args[0]) if delayed.args else ""
    return ""


def _reductions(statement: ast.stmt, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a function with only one argument, a result, whose value is used."""
    alone = {id(one.value) for one in ast.walk(statement) if isinstance(one, ast.Expr)}
    for node in ast.walk(statement):
        if id(node) in alone:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            only = len(node.args) == 1 and not node.keywords and _is_name(node.args[0], name)
            if only and node.func.id not in _KEEPS:
                yield node
