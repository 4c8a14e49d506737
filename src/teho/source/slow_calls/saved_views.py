"""Finds parts of tensors that `torch.save` writes with the whole tensor.

A slice of a tensor shares the memory of the whole tensor, and `torch.save` writes all of this
memory. `clone()` makes a tensor that has only the slice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_saved_view"]

_SAVE = "torch.save"
_DEEPEST = 4
_KEEPS = frozenset(("detach", "view", "squeeze", "unsqueeze", "transpose", "permute", "data", "T"))
"""Methods whose result shares the memory of the tensor."""
_OF_TENSORS = frozenset(
    (
        *("to", "cpu", "cuda", "float", "double", "half", "detach", "clone", "contiguous"),
        *("reshape", "view", "requires_grad_", "normal_", "uniform_", "mul", "add", "div"),
    )
)
_NO_TENSORS = ("load", "nn.Parameter", "nn.Module", "save", "device", "Generator")


def find_saved_view(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the call on a stack that saves a slice of a larger tensor, and with it the tensor.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or program.called(call, level.place) != _SAVE:
        return None
    if not call.args or not level.loops():
        return None
    for part in _parts(call.args[0], level):
        view = _view(part, level)
        if view is None or not _is_tensor(view.value, level.place, program, 0):
            continue
        frame = level.frame
        return CostlyOption(
            name="saved_with_whole_tensor",
            at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
            lines=(frame,),
            words={
                "view": ast.unparse(part),
                "slice": ast.unparse(view),
                "whole": ast.unparse(view.value),
                "line": str(part.lineno),
            },
        )
    return None


def _parts(saved: ast.expr, level: Level) -> Iterator[ast.expr]:
    """Yield the expressions that are saved: the items of a dictionary or list, or the object."""
    match saved:
        case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
            for one in values:
                yield from _parts(one, level)
        case ast.Name(id=name):
            found = assigned_value(name, level.function)
            is_here = found is not None and found[1] is level.function
            if found is not None and is_here and isinstance(found[0], (ast.Dict, ast.List)):
                yield from _parts(found[0], level)
            else:
                yield saved
        case ast.Subscript() | ast.Call() | ast.Attribute():
            yield saved


def _view(node: ast.expr, level: Level, depth: int = 0) -> ast.Subscript | None:
    """Return the slice that an expression is, or shares its memory with; None: it is none."""
    match node:
        case ast.Subscript(slice=cut):
            return node if _is_short(cut) else None
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _KEEPS:
            return _view(inner, level, depth)
        case ast.Attribute(value=inner, attr=name) if name in _KEEPS:
            return _view(inner, level, depth)
        case ast.Name(id=name) if depth < _DEEPEST:
            found = assigned_value(name, level.function)
            if found is not None and found[1] is level.function:
                return _view(found[0], level, depth + 1)
    return None


def _is_short(cut: ast.expr) -> bool:
    """Return whether a slice is a part: it has two ends, or a number as its end.

    An index such as `keep` may be a mask or a list of numbers: then it makes a new tensor.
    """
    first = cut.elts[0] if isinstance(cut, ast.Tuple) and cut.elts else cut
    match first:
        case ast.Slice(lower=lower, upper=upper, step=None) if upper is not None:
            is_number = isinstance(upper, ast.Constant) and isinstance(upper.value, int)
            return lower is not None or is_number
    return False


def _is_tensor(node: ast.expr | None, at: Place, program: Program, depth: int) -> bool:
    """Return whether an object is certainly a tensor of PyTorch: slices of lists are copies."""
    if node is None or depth > _DEEPEST:
        return False
    match node:
        case ast.Name(id=name):
            found = assigned_value(name, at.function)
            return found is not None and _is_tensor(
                found[0], Place(at.path, found[1]), program, depth + 1
            )
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return _is_tensor(inner, at, program, depth)
        case ast.BinOp(left=left, right=right):
            return any(_is_tensor(one, at, program, depth) for one in (left, right))
        case ast.Call(func=func):
            called = program.called(node, at)
            if isinstance(called, str):
                name = called.partition(".")[2]
                return called.startswith("torch.") and not name.startswith(_NO_TENSORS)
            if isinstance(called, Place):
                returned = [one for one in called.function.nodes if isinstance(one, ast.Return)]
                return bool(returned) and all(
                    _is_returned_tensor(one.value, called, program, depth + 1) for one in returned
                )
            if isinstance(func, ast.Attribute) and func.attr in _OF_TENSORS:
                return _is_tensor(func.value, at, program, depth)
    return False


def _is_returned_tensor(node: ast.expr | None, at: Place, program: Program, depth: int) -> bool:
    if isinstance(node, ast.Name):  # a name that gets several values, all of them tensors
        given = at.function.assigned.get(node.id, ())
        values = [one.value for one in given if one.loop is None]
        return (
            bool(values)
            and len(values) == len(given)
            and all(_is_tensor(one, at, program, depth) for one in values if one is not None)
        )
    return _is_tensor(node, at, program, depth)
