"""Finds data that each rank prepares as a whole, although it uses only its own share.

`clean(images)[rank::world]` does the work of all ranks on each rank. If the work on one item does
not depend on the others, `clean(images[rank::world])` gives the same result.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.changes import named_values
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Function, Loop, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.ranks import is_rank, is_world
from teho.source.stack import Level

__all__ = ["find_prepared_by_all"]

_SHAPES = frozenset(("len", "empty_like", "zeros_like", "ones_like", "full_like", "range"))
"""Functions that need only the number of items."""
_JOINED = frozenset(
    (
        *("stack", "array", "asarray", "from_numpy", "tensor", "as_tensor", "list", "tuple"),
        *("unsqueeze", "float", "double", "half", "long", "astype", "to", "contiguous", "numpy"),
    )
)
"""Functions that keep the items and their order."""


class _Share(NamedTuple):
    """The share of a rank that code cuts out of a result."""

    text: str
    """The statement or expression with the share."""
    part: str
    """`[rank::world]`."""


def find_prepared_by_all(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that prepares the items of all ranks, for the items of one.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for number, level in enumerate(levels[:-1]):
        call, inner = level.node, levels[number + 1]
        if not isinstance(call, ast.Call) or inner.caller or len(call.args) != 1 or call.keywords:
            continue
        share = _share(call, level)
        if share is None or not isinstance(call.args[0], (ast.Name, ast.Attribute)):
            continue
        called = purity.program.called(call, level.place)
        is_inner = isinstance(called, Place) and called.function.node is inner.function.node
        if is_inner and _is_item_by_item(levels, number + 1, purity):
            return _found(call, share, level)
    return None


def _share(call: ast.Call, level: Level) -> _Share | None:
    """Return the only part of a result that the program uses, if it is the share of a rank."""
    nodes = level.function.nodes
    name = next(
        (
            target.id
            for node in nodes
            for target, value in named_values(node)
            if value is call and isinstance(target, ast.Name)
        ),
        "",
    )
    if name:
        given = level.function.assigned.get(name, ())
        cuts = [_cut(node, name, level.function) for node in nodes]
        found = [one for one in cuts if one is not None]
        uses = [
            node
            for node in nodes
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]
        # `x = clean(x); x = x[rank::world]`: what follows uses the share.
        is_renamed = len(given) == 2 and len(found) == 1 and found[0][1]
        is_only = len(given) == 1 and len(found) == len(uses) == 1
        return found[0][0] if is_only or is_renamed else None
    for node in nodes:
        if isinstance(node, ast.Subscript) and node.value is call:
            part = _part(node, level.function)
            return _Share(level.file.text_of(node), part) if part else None
    return None


def _cut(node: ast.AST, name: str, function: Function) -> tuple[_Share, bool] | None:
    """Return the share that a statement cuts out of a name; whether the share gets the name."""
    match node:
        case ast.Assign(targets=[target], value=ast.Subscript(value=ast.Name(id=other)) as cut):
            part = _part(cut, function)
            if other == name and part:
                is_same = isinstance(target, ast.Name) and target.id == name
                return _Share(ast.unparse(node), part), is_same
    return None


def _part(cut: ast.Subscript, function: Function) -> str:
    """Return `[rank::world]`; empty if the part is not the share of a rank."""
    match cut.slice:
        case ast.Slice(lower=ast.expr() as rank, upper=None, step=ast.expr() as world):
            if is_rank(rank, function) and is_world(world, function):
                return f"[{ast.unparse(cut.slice)}]"
    return ""


def _is_item_by_item(levels: Sequence[Level], number: int, purity: Purity) -> bool:
    """Return whether a function computes each item of its result from one item of its argument."""
    level = levels[number]
    function = level.function
    params = function.params_of_call
    if len(params) != 1 or not purity.is_pure_function(level.place):
        return False
    loops = [one for one in function.loops if _iterates_over(one, params[0])]
    if len(loops) != 1 or len(_uses(params[0], function)) != 1:
        return False
    (loop,) = loops
    kept = _kept(loop)
    if kept is None:
        return False
    changed = [*levels]
    changed[number] = level._replace(node=ast.Tuple(elts=[kept[1]], ctx=ast.Load()))
    known = Inputs(changed, number, loop, purity, knows_items=True)
    return known.of_call(number) is Value.SAME and _is_returned(kept[0], loop, function)


def _iterates_over(loop: Loop, name: str) -> bool:
    """Return whether a loop goes through a name: `for x in xs`, `for i, x in enumerate(xs)`."""
    match loop.iterable:
        case ast.Name(id=other):
            return other == name
        case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=other)]):
            return other == name
    return False


def _uses(name: str, function: Function) -> list[ast.AST]:
    """Return where a function reads its argument, except for the number and the shape of items."""
    harmless = {
        id(one)
        for node in function.nodes
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else root_name(node.func))
        in _SHAPES
        for one in ast.walk(node)
    }
    return [
        node
        for node in function.nodes
        if isinstance(node, ast.Name) and node.id == name and id(node) not in harmless
    ]


def _kept(loop: Loop) -> tuple[str, ast.expr] | None:
    """Return the name of the result, and the value of one item; empty for a comprehension."""
    node = loop.node
    if isinstance(node, ast.ListComp):
        return ("", node.elt) if len(node.generators) == 1 and not node.generators[0].ifs else None
    if not isinstance(node, ast.For):
        return None
    index = node.target.elts[0] if isinstance(node.target, ast.Tuple) else None
    match node.body[-1]:
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=at))], value=value
        ) if isinstance(index, ast.Name) and index.id == at:
            return name, value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(ast.Name(id=name), "append"), args=[value])
        ):
            return name, value
    return None


def _is_returned(name: str, loop: Loop, function: Function) -> bool:
    """Return whether a function returns the items in their order, and computes nothing else."""
    returned = [node for node in function.nodes if isinstance(node, ast.Return)]
    if len(returned) != 1 or returned[0].value is None:
        return False
    value = returned[0].value
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=args):
                is_function = isinstance(inner, ast.Name) and bool(args) and name != inner.id
                if method not in _JOINED:
                    return False
                value = args[0] if is_function and args else inner
            case ast.Call(func=ast.Name(id=method), args=[inner]) if method in _JOINED:
                value = inner
            case ast.Name(id=other) if not name:
                given = function.assigned.get(other, ())
                return len(given) == 1 and given[0].value is loop.node
            case ast.Name(id=other):
                return other == name
            case _:
                return value is loop.node


def _found(call: ast.Call, share: _Share, level: Level) -> CostlyOption:
    frame = level.frame
    argument = call.args[0]
    new = ast.unparse(call).replace(
        f"({ast.unparse(argument)})", f"({ast.unparse(argument)}{share.part})"
    )
    is_at_once = share.text.startswith(ast.unparse(call))
    words = {
        "old": share.text if is_at_once else ast.unparse(call),
        "new": new,
        "share": share.text,
    }
    return CostlyOption(
        name="prepared_by_all_ranks" if is_at_once else "prepared_by_all_ranks_before",
        at=Frame(frame.file, frame.function, call.lineno, ast.unparse(call)),
        lines=(frame,),
        words=words,
    )
