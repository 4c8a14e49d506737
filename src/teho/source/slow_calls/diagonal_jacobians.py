"""Finds Jacobians of a whole batch of which the program uses only the blocks of each sample.

`jacobian(net, x)` of a batch computes the derivative of each output of each sample with respect to
the inputs of all samples. If the samples do not depend on each other, all blocks except those on
the diagonal are zero. The sum of the outputs over the batch has only these blocks.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, dotted_name
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import loads_of
from teho.source.stack import Level

__all__ = ["find_diagonal_jacobian"]

_JACOBIAN = "torch.autograd.functional.jacobian"
_OF_FUNCTION = frozenset(("torch.func.jacrev", "functorch.jacrev"))
"""Functions that return a function: `jacrev(net)(x)`."""
_DIAGONAL = lazy_pattern(r"(\w)(\w)\1(\w)->\1\2\3")


class _Jacobian(NamedTuple):
    """A call that computes a Jacobian."""

    call: ast.Call
    function: str
    of_sum: str
    """The same call for the sum over the batch."""


class _Use(NamedTuple):
    """The only use of a Jacobian."""

    node: ast.expr
    new: str
    """The same blocks, from a Jacobian `{jacobian}` of the sum over the batch."""


def find_diagonal_jacobian(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that computes the derivatives between all pairs of samples.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for level in levels:
        jacobian = _jacobian(level, purity)
        if jacobian is None:
            continue
        assigned = _assigned(jacobian.call, level.function)
        use = _use(assigned, jacobian.call, level.function)
        if use is not None:
            return _found(jacobian, assigned, use, level)
    return None


def _jacobian(level: Level, purity: Purity) -> _Jacobian | None:
    """Return the Jacobian of a function for one batch; None if a level computes something else."""
    call = level.node
    if not isinstance(call, ast.Call) or not all(word.arg for word in call.keywords):
        return None
    words = "".join(f", {ast.unparse(word)}" for word in call.keywords)
    match call:
        case ast.Call(func=ast.Call(args=[function], keywords=[]) as made, args=[batch]):
            is_it = purity.program.called(made, level.place) in _OF_FUNCTION
            new = f"{ast.unparse(made.func)}({{function}})({ast.unparse(batch)}{words})"
        case ast.Call(args=[function, batch]):
            is_it = purity.program.called(call, level.place) == _JACOBIAN
            new = f"{ast.unparse(call.func)}({{function}}, {ast.unparse(batch)}{words})"
        case _:
            return None
    is_one = not isinstance(batch, (ast.Tuple, ast.List, ast.Starred))
    if not is_it or not is_one or not dotted_name(function):
        return None
    name = ast.unparse(function)
    summed = f"lambda batch: {name}(batch).sum(0)"
    return _Jacobian(call, name, new.format(function=summed))


def _assigned(call: ast.Call, function: Function) -> ast.Assign | None:
    """Return the statement that gives a Jacobian its name."""
    for node in function.nodes:
        if isinstance(node, ast.Assign) and node.value is call:
            return node
    return None


def _use(assigned: ast.Assign | None, call: ast.Call, function: Function) -> _Use | None:
    """Return the only use of a Jacobian, if it takes the blocks of each sample with itself."""
    name = ""
    if assigned is not None:
        target = assigned.targets[0] if len(assigned.targets) == 1 else None
        name = target.id if isinstance(target, ast.Name) else ""
        if len(function.assigned.get(name, ())) != 1 or len(loads_of(name, function.nodes)) != 1:
            return None
        if any(loads_of(name, one.nodes) for one in function.inner.values()):
            return None
    for node in function.nodes:
        if isinstance(node, ast.expr) and (new := _blocks(node, name, call, function)):
            return _Use(node, new)
    return None


def _blocks(node: ast.expr, name: str, call: ast.Call, function: Function) -> str:
    """Return new code for an expression that takes the diagonal blocks of a Jacobian."""

    def is_it(one: ast.expr) -> bool:
        return one is call or (bool(name) and isinstance(one, ast.Name) and one.id == name)

    match node:
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)) if is_it(value):
            texts = [ast.unparse(one) for one in parts]
            is_pair = len(texts) in (3, 4) and texts[1] == ":" and texts[0] == texts[2]
            if is_pair and texts[3:] in ([], [":"]) and _are_all_rows(parts[0], function):
                return "{jacobian}.movedim(1, 0)"
        case ast.Call(func=func, args=[value, *_]) if is_it(value):
            if dotted_name(func) == "torch.diagonal" and _dims(node) == (0, 2):
                return "{jacobian}.permute(0, 2, 1)"
        case ast.Call(func=ast.Attribute(value=value, attr="diagonal")) if is_it(value):
            if _dims(node) == (0, 2):
                return "{jacobian}.permute(0, 2, 1)"
        case ast.Call(func=func, args=[ast.Constant(value=str(text)), value]) if (
            is_it(value) and dotted_name(func) == "torch.einsum"
        ):
            if _DIAGONAL.fullmatch(text.replace(" ", "")):
                return "{jacobian}.movedim(1, 0)"
    return ""


def _dims(call: ast.Call) -> tuple[int, int] | None:
    """Return the dimensions of `diagonal(dim1=0, dim2=2)`."""
    words = {word.arg: word.value for word in call.keywords}
    match words.get("dim1"), words.get("dim2"):
        case ast.Constant(value=int(first)), ast.Constant(value=int(second)):
            return first, second
    return None


def _are_all_rows(node: ast.expr, function: Function) -> bool:
    """Return whether an index has the number of each sample: `torch.arange(len(x))`."""
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, function)
        node = found[0] if found is not None else node
    name = dotted_name(node.func) if isinstance(node, ast.Call) else ""
    return (
        name.rpartition(".")[2] == "arange" and isinstance(node, ast.Call) and len(node.args) == 1
    )


def _found(
    jacobian: _Jacobian, assigned: ast.Assign | None, use: _Use, level: Level
) -> CostlyOption:
    frame, call = level.frame, jacobian.call
    name = "jacobian_of_all_pairs" if assigned is not None else "jacobian_of_all_pairs_at_once"
    return CostlyOption(
        name=name,
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "line": str(use.node.lineno),
            "function": jacobian.function,
            "old": level.file.text_of(use.node),
            "new": use.new.format(jacobian=jacobian.of_sum),
        },
    )
