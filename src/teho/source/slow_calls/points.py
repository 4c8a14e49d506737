"""Finds functions of libraries that take many points at once, and get one point at a time.

An interpolator of SciPy checks its arguments at each call, so a call with one point takes almost as
long as a call with a thousand points. The source shows that the points of a loop do not depend on
each other.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame, is_library
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, root_name
from teho.source.stack import Level

__all__ = ["find_single_points"]

_OF_MANY = lazy_pattern(
    r"/scipy/interpolate/\w+\.py:(\w+\.)?(__call__|ev)$|/scipy/stats/_kde\.py:(\w+\.)?evaluate$"
    r"|/scipy/spatial/_kdtree\.py:(\w+\.)?query$"
)
"""Functions that return one value for each point."""
_CONVERTS = lazy_pattern(
    r"(np|numpy)\.(array|asarray|atleast_[12]d|float32|float64)|float|tuple|list"
)
_LEAST_POINTS = 100
"""With fewer points, one call saves little."""
_DEEPEST = 4


def find_single_points(levels: Sequence[Level], frames: Sequence[Frame]) -> CostlyOption | None:
    """Return the call on a stack that gets one point of a loop at a time.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or not _is_of_many(level, frames):
        return None
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    loop = next(reversed(level.loops()), None)
    target = _target(loop) if loop is not None else None
    if loop is None or loop.iterable is None or target is None:
        return None
    if not may_iterate(loop, level.function, _LEAST_POINTS):
        return None
    if not _is_from_before(root_name(call.func), loop, level.function):
        return None
    given = _values_in(loop, level.function)
    point = _resolved(call.args[0], given, 0)
    names = frozenset(one.id for one in ast.walk(target) if isinstance(one, ast.Name))
    if point is None or not _is_of_loop(point, names, given):
        return None
    file, frame = level.file, level.frame
    return CostlyOption(
        name="points_one_by_one",
        at=Frame(frame.file, frame.function, call.lineno, file.text_of(call)),
        lines=(frame,),
        words={
            "point": ast.unparse(point),
            "target": ast.unparse(target),
            "items": ast.unparse(loop.iterable),
            "loop": f"{frame.file.rpartition('/')[2]}:{loop.line}",
        },
    )


def _is_of_many(level: Level, frames: Sequence[Frame]) -> bool:
    """Return whether the line calls, itself, a function that takes many points."""
    before = None
    for frame in frames:
        if frame == level.frame:
            break
        before = frame
    if before is None or not is_library(before.file):
        return False
    return _OF_MANY.search(f"{before.file}:{before.function}") is not None


def _target(loop: Loop) -> ast.expr | None:
    """Return what gets the items of a loop; None: it has inner loops, or leaves out items."""
    match loop.node:
        case ast.For(target=target):
            return target
        case ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one]) if not one.ifs:
            return one.target
    return None


def _values_in(loop: Loop, function: Function) -> Mapping[str, ast.expr | None]:
    """Return the names that the body of a loop gives a value; None: not one plain value."""
    found: dict[str, ast.expr | None] = {}
    for name, given in function.assigned.items():
        inside = [one for one in given if loop.first <= one.line <= loop.last]
        if not inside or any(one.loop == loop for one in inside):
            continue
        is_plain = len(inside) == 1 and inside[0].loop is None
        found[name] = inside[0].value if is_plain else None
    for node in ast.walk(loop.node):
        if isinstance(node, ast.AugAssign):
            found[root_name(node.target)] = None  # the next point may depend on the one before
    return found


def _is_from_before(name: str, loop: Loop, function: Function) -> bool:
    """Return whether a name has the same object in each iteration."""
    given = function.assigned.get(name, [])
    return bool(name) and not any(loop.line <= one.line <= loop.last for one in given)


def _resolved(node: ast.expr, given: Mapping[str, ast.expr | None], depth: int) -> ast.expr | None:
    """Return a point without the names that the loop gives a value; None: it is not clear."""
    if isinstance(node, ast.Name) and node.id in given:
        value = given[node.id]
        return _resolved(value, given, depth + 1) if value and depth < _DEEPEST else None
    return node


def _is_of_loop(
    point: ast.expr, names: frozenset[str], given: Mapping[str, ast.expr | None]
) -> bool:
    """Return whether a point is made of the items of the loop, and of nothing else that changes."""
    used = False
    for node in ast.walk(point):
        match node:
            case ast.Name(id=name):
                if name in given:
                    return False
                used |= name in names
            case ast.Call(func=function):
                if not _CONVERTS.fullmatch(ast.unparse(function)):
                    return False
            case ast.Lambda() | ast.Await() | ast.Yield() | ast.NamedExpr() | ast.IfExp():
                return False
    return used
