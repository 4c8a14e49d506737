"""Finds work that a loop does again in each iteration, with the same inputs.

The stack says which lines took the time: the call of each function, from the loop down. The source
says where the inputs of these calls come from. If none of them changes in the loop, and the called
functions change nothing, the result is the same in each iteration. If Teho cannot be sure, it
reports nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import msgspec

from teho.model.in_source import Repeated
from teho.model.stack import Frame
from teho.source.inputs import Inputs, Value
from teho.source.known import fits, is_cached, known
from teho.source.parsed import Loop, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, levels_of

__all__ = ["find_repeated"]

_ITERATORS = frozenset(("enumerate", "zip", "range", "reversed", "map", "filter", "iter"))
"""Functions that compute nothing before their items are used."""
_COLLECTIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.Constant)
_CONVERTERS = frozenset(("list", "dict", "set", "deque", "OrderedDict"))
"""Functions that copy a collection, but run the code that computes the items of an iterator."""


def find_repeated(frames: Sequence[Frame], purity: Purity) -> list[Repeated]:
    """Return the calls on a stack that give the same results again in each iteration of a loop.

    At most two: the call with the same result in each iteration, and the call that goes through
    the same values again; of several, the outermost one, and of its loops the outermost one.

    Args:
        frames: the stack, innermost frame first.
        purity: the program.
    """
    levels = levels_of(frames, purity.program)
    found: dict[Value, Repeated] = {}
    for number, level in enumerate(levels):
        if level.is_measured:
            break
        if not _may_be_repeated(level, purity):
            continue
        called = (
            purity.program.called(level.node, level.place)
            if isinstance(level.node, ast.Call)
            else None
        )
        has_cache = isinstance(called, Place) and is_cached(called.function)
        for at in range(number + 1):
            if any(is_cached(inner.function) for inner in levels[at + 1 : number + 1]):
                continue
            loops = levels[at].loops()
            if levels[at].is_called_again:
                loops.insert(0, levels[at].as_loop())
            for loop in loops:
                value = Inputs(levels, at, loop, purity).of_call(number)
                # The cache of a function has the one result after the first iteration.
                is_kept = has_cache and value is Value.SAME
                if value <= Value.REPEATS and value not in found and not is_kept:
                    is_changed = _is_changed(levels[at : number + 1], purity)
                    if is_changed and _only_makes(levels[-1].node, levels[-1].place, purity):
                        continue  # the copy that each iteration then needs takes as long
                    one = _repeated(levels, number, at, loop, value)
                    found[value] = msgspec.structs.replace(
                        one, has_cache=has_cache, is_changed=is_changed
                    )
        if Value.SAME in found:
            break
    return [found[value] for value in sorted(found)]


def _repeated(levels: Sequence[Level], number: int, at: int, loop: Loop, value: Value) -> Repeated:
    outer = levels[at]
    if isinstance(loop.node, ast.Lambda):
        text = outer.file.text_of(loop.node)
    else:
        text = outer.file.line_text(loop.line).rstrip(":")
    return Repeated(
        calls=tuple(level.frame for level in levels[: number + 1]),
        loop=Frame(outer.frame.file, outer.frame.function, loop.line, text),
        last=loop.last,
        is_same=value is Value.SAME,
    )


def _is_changed(levels: Sequence[Level], purity: Purity) -> bool:
    """Return whether the program may change the result of the innermost of these calls."""
    for level in reversed(levels):
        if level.node is None:
            return False
        if purity.changes.is_result_changed(level.node, level.place):
            return True
        if level.caller or not purity.changes.is_returned(level.node, level.place):
            return False
    return False


def _only_makes(node: ast.expr | None, at: Place, purity: Purity) -> bool:
    """Return whether an expression makes an object, and computes nothing: `np.full(n, 0.0)`.

    Args:
        node: the expression.
        at: the function that it is in.
        purity: the program.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return any(isinstance(one, ast.List) for one in (node.left, node.right))  # `[0] * n`
    if not isinstance(node, ast.Call):
        return False
    called = purity.program.called(node, at)
    if not isinstance(called, str):
        method = node.func if called is None else None
        return isinstance(method, ast.Attribute) and method.attr in known().methods.makers
    if called.rpartition(".")[2] not in _CONVERTERS:
        return fits("makers", called)
    return all(isinstance(one, _COLLECTIONS) or _is_range(one) for one in node.args)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and root_name(node.func) == "range"


def _may_be_repeated(level: Level, purity: Purity) -> bool:
    """Return whether a level's expression has a result that is used, and no other effect."""
    node = level.node
    if level.gets_next or not isinstance(node, (ast.Call, ast.BinOp)):
        return False
    if isinstance(node, ast.Call):
        is_iterator = root_name(node.func) in _ITERATORS
        if is_iterator or not purity.is_pure(node, level.place):
            return False
    for one in level.function.nodes:
        if isinstance(one, ast.Expr) and one.value is node:
            # `scaler.fit(x)`: the result is in the object, which is new in each iteration.
            method = node.func if isinstance(node, ast.Call) else None
            return isinstance(method, ast.Attribute) and method.attr.startswith("fit")
    return True
