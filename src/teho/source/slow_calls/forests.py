"""Finds forests that a loop over their sizes grows again from the first tree.

`for size in (50, 100, 150): RandomForestClassifier(size).fit(x, y)` grows 300 trees for a forest of
150. With `warm_start=True`, each `fit` only adds the trees that are missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.inputs import Inputs, Value
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, Loop
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_forest_of_sizes"]

_KEEPS = frozenset(("append", "add", "insert", "put", "setdefault", "extend", "submit"))
"""Methods that may keep the forest of an iteration."""
_LEAST_PART = 2
"""The forests have at least this many times as many trees together as the largest one has."""
_MODULE = "sklearn.ensemble."
_FORESTS = (
    *("RandomForestClassifier", "RandomForestRegressor"),
    *("ExtraTreesClassifier", "ExtraTreesRegressor"),
)
_BOOSTING = ("GradientBoostingClassifier", "GradientBoostingRegressor")
_SIZE = "n_estimators"
_NOT_THE_SAME = frozenset(("oob_score", "warm_start", "n_iter_no_change", "class_weight"))
"""Arguments with which trees that are added later may not give the same result."""


class _Made(NamedTuple):
    """A forest that a loop makes in each iteration."""

    name: str
    call: ast.Call
    """`RandomForestClassifier(size)`."""
    kind: str
    statement: ast.Assign
    size: ast.expr
    fit: str
    """`.fit(x, y)` if the same statement trains it."""


def find_forest_of_sizes(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the forest on a stack that a loop over its sizes grows again.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for number, level in enumerate(levels):
        fit = level.node
        if not (isinstance(fit, ast.Call) and isinstance(fit.func, ast.Attribute)):
            continue
        if fit.func.attr != "fit":
            continue
        for loop in reversed(level.loops()):
            made = _made(fit, level, loop, purity)
            if made is None or not _grows(loop, made.size, level.function):
                continue
            if _is_same(levels, number, loop, fit, made, purity) and not _is_kept(
                made, loop, purity
            ):
                return _found(made, level, loop)
    return None


def _made(fit: ast.Call, level: Level, loop: Loop, purity: Purity) -> _Made | None:
    """Return the only statement of a loop that makes the forest that a call trains."""
    if not isinstance(loop.node, ast.For) or not isinstance(fit.func, ast.Attribute):
        return None
    trained = fit.func.value
    for node in loop.node.body:  # in each iteration, under no condition
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                pass
            case _:
                continue
        if call is fit and isinstance(trained, ast.Call):
            made, end = trained, ast.unparse(fit).removeprefix(ast.unparse(trained))
        elif isinstance(trained, ast.Name) and trained.id == name:
            made, end = call, ""
        else:
            continue
        if len(level.function.assigned.get(name, ())) != 1 or name in level.function.params:
            return None
        called = purity.program.called(made, level.place)
        kind = called.removeprefix(_MODULE) if isinstance(called, str) else ""
        words = {word.arg: word.value for word in made.keywords}
        if kind not in (*_FORESTS, *_BOOSTING) or None in words or len(made.args) > 1:
            return None
        value = words.get(_SIZE) or (made.args[0] if made.args else None)
        if value is None or not _NOT_THE_SAME.isdisjoint(words):
            return None
        if kind in _BOOSTING and made.args:
            return None  # its first argument is another one
        return _Made(name, made, kind, node, value, end)
    return None


def _grows(loop: Loop, size: ast.expr, function: Function) -> bool:
    """Return whether the source shows that each forest has more trees than the one before."""
    target = getattr(loop.node, "target", None)
    if not isinstance(target, ast.Name) or not isinstance(size, ast.Name) or size.id != target.id:
        return False
    sizes = _numbers(loop.iterable, function)
    if len(sizes) < 2 or any(one >= other for one, other in pairwise(sizes)):
        return False
    return sum(sizes) >= _LEAST_PART * sizes[-1]


def _numbers(node: ast.expr | None, function: Function) -> list[int]:
    """Return the numbers of a list, a tuple or a `range`; none if they are not in the source."""
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, function)
        return _numbers(found[0], found[1]) if found and not isinstance(found[0], ast.Name) else []
    parts: list[ast.expr] = []
    is_range = False
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            parts = elements
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            parts, is_range = arguments, True
    values = [one.value for one in parts if isinstance(one, ast.Constant)]
    numbers = [one for one in values if isinstance(one, int) and one > 0]
    if not parts or len(numbers) < len(parts):
        return []
    return list(range(*numbers)) if is_range and len(numbers) <= 3 else numbers


def _is_same(
    levels: Sequence[Level], number: int, loop: Loop, fit: ast.Call, made: _Made, purity: Purity
) -> bool:
    """Return whether the iterations differ only in the size of the forest."""
    others = [word.value for word in made.call.keywords if word.value is not made.size]
    others += [one for one in made.call.args if one is not made.size]
    data = [*fit.args, *(word.value for word in fit.keywords)]
    inputs = ast.Tuple(elts=[*others, *data], ctx=ast.Load())
    changed = [*levels]
    changed[number] = levels[number]._replace(node=inputs)
    return Inputs(changed, number, loop, purity).of_call(number) is Value.SAME


def _is_kept(made: _Made, loop: Loop, purity: Purity) -> bool:
    """Return whether the program may keep the forest of an iteration: the next one changes it."""
    body = purity.program.all_nodes(loop.node, getattr(loop.node, "body", []))
    parents = {child: node for node in body for child in ast.iter_child_nodes(node)}
    return any(map(_keeps, _uses(made.name, body, parents)))


def _uses(
    name: str, body: Sequence[ast.AST], parents: dict[ast.AST, ast.AST]
) -> Iterator[tuple[ast.AST | None, ast.AST]]:
    for node in body:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield parents.get(node), node


def _keeps(use: tuple[ast.AST | None, ast.AST]) -> bool:
    outer, _ = use
    if isinstance(outer, ast.Call):  # `score(forest, x)` only asks it, `forests.append(forest)` not
        method = outer.func.attr if isinstance(outer.func, ast.Attribute) else ""
        return method in _KEEPS
    return not isinstance(outer, ast.Attribute)


def _found(made: _Made, level: Level, loop: Loop) -> CostlyOption:
    frame = level.frame
    kept = [word for word in made.call.keywords if word.value is not made.size]
    kept.append(ast.keyword("warm_start", ast.Constant(True)))
    new = ast.Call(func=made.call.func, args=[], keywords=kept)
    size = ast.unparse(made.size)
    has_jobs = any(word.arg == "n_jobs" for word in kept)
    uses_one_core = made.kind in _FORESTS and not has_jobs
    words = {
        "before": f"{made.name} = {ast.unparse(new)}",
        "file": frame.file.rpartition("/")[2],
        "loop": str(loop.line),
        "line": str(made.statement.lineno),
        "new": f"{made.name}.set_params({_SIZE}={size}){made.fit}",
    }
    return CostlyOption(
        name="forest_of_sizes_on_one_core" if uses_one_core else "forest_of_sizes",
        at=Frame(frame.file, frame.function, made.call.lineno, f"{_SIZE}={size}"),
        lines=(frame,),
        words=words,
    )
