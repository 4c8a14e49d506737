"""Finds loops that search a whole array for each key: `for k in keys: values[labels == k]`.

Each iteration compares all elements of the array. If the array is divided once, each iteration only
needs its own elements. The source shows that the array is the same in each iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame, is_library
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, dotted_name, root_name
from teho.source.program import Program
from teho.source.stack import Level, argument

__all__ = ["find_masks"]

_LEAST_KEYS = 20
"""With fewer keys, dividing the array takes about as long as the searches."""
_PLACES = frozenset(
    ("nonzero", "flatnonzero", "where", "argwhere", "count_nonzero", "sum", "any", "mean", "std")
)
"""Functions and methods that go through a whole mask, or through the elements that it selects."""
_OF_LABELS = lazy_pattern(r"(scipy\.ndimage|skimage\.measure)(\.\w+)?\.label")
_OTHERS = lazy_pattern(r"/(pandas|polars|xarray|torch|tensorflow|jax|sklearn|dask|pyarrow)/")
"""Libraries whose tables and tensors have other ways to divide them."""


class _Mask(NamedTuple):
    """A comparison of an array with the key of a loop."""

    node: ast.Compare
    array: ast.expr
    key: str
    names: frozenset[str]
    """Names that the loop gives to the mask."""


def find_masks(
    levels: Sequence[Level], frames: Sequence[Frame], program: Program
) -> CostlyOption | None:
    """Return the comparison of a whole array, on a stack, that a loop makes for each key.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        program: the files of the program.
    """
    level = levels[-1]
    inner = frames[: frames.index(level.frame)] if level.frame in frames else frames
    if level.node is None or any(_OTHERS.search(one.file) for one in inner if is_library(one.file)):
        return None
    loop = next(reversed(level.loops()), None)
    if loop is None or not isinstance(loop.node, ast.For) or loop.iterable is None:
        return None
    if not may_iterate(loop, level.function, _LEAST_KEYS):
        return None
    for mask in _masks(loop.node, loop, level.function):
        if _is_of_mask(level.node, mask):
            return _found(levels, loop, mask, program)
    return None


def _masks(loop: ast.For, parsed_loop: Loop, function: Function) -> Iterator[_Mask]:
    """Yield the comparisons of an array from before a loop with an item of the loop."""
    keys = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    parents = {child: node for node in ast.walk(loop) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(loop):
        if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)):
            continue
        if len(node.ops) != 1:
            continue
        sides = (node.left, node.comparators[0])
        for array, key in (sides, sides[::-1]):
            is_key = isinstance(key, ast.Name) and key.id in keys
            if not is_key or not isinstance(array, (ast.Name, ast.Attribute)):
                continue
            given = function.assigned.get(root_name(array), [])
            if any(parsed_loop.line <= one.line <= parsed_loop.last for one in given):
                continue
            outer = parents.get(node)
            targets = outer.targets if isinstance(outer, ast.Assign) else []
            names = frozenset(one.id for one in targets if isinstance(one, ast.Name))
            mask = _Mask(node, array, ast.unparse(key), names)
            if _is_used_as_mask(loop, mask):
                yield mask


def _is_used_as_mask(loop: ast.For, mask: _Mask) -> bool:
    """Return whether the program selects elements with a comparison: it is of an array then."""
    return any(
        _is_mask(node.slice, mask)
        if isinstance(node, ast.Subscript)
        else isinstance(node, ast.Call) and any(_is_mask(one, mask) for one in _read_arrays(node))
        for node in ast.walk(loop)
    )


def _read_arrays(call: ast.Call) -> list[ast.expr]:
    """Return the arrays of which a call goes through all elements."""
    name = dotted_name(call.func).rpartition(".")[2]
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
    if name not in _PLACES:
        return []
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    return [*call.args[:1], *([receiver] if receiver is not None else [])]


def _is_mask(node: ast.expr, mask: _Mask) -> bool:
    if node is mask.node or (isinstance(node, ast.Name) and node.id in mask.names):
        return True
    if isinstance(node, ast.BinOp):
        return _is_mask(node.left, mask) or _is_mask(node.right, mask)
    return isinstance(node, ast.Tuple) and any(_is_mask(one, mask) for one in node.elts)


def _is_of_mask(node: ast.expr, mask: _Mask) -> bool:
    """Return whether an expression only makes a mask, or goes through a whole one."""
    if _is_mask(node, mask):
        return True
    if isinstance(node, ast.Subscript):
        return _is_mask(node.slice, mask)
    if isinstance(node, ast.Call):
        return any(_is_of_mask(one, mask) for one in _read_arrays(node))
    return isinstance(node, ast.UnaryOp) and _is_of_mask(node.operand, mask)


def _is_of_labels(levels: Sequence[Level], array: ast.expr, program: Program) -> bool:
    """Return whether an array has the labels of the parts of a picture."""
    name, number = root_name(array), len(levels) - 1
    while name and number >= 0:
        level = levels[number]
        for one in level.function.assigned.get(name, []):
            called = (
                program.called(one.value, level.place) if isinstance(one.value, ast.Call) else None
            )
            if isinstance(called, str) and _OF_LABELS.fullmatch(called):
                return True
        passed = argument(levels, number, name) if name in level.function.params else None
        name, number = root_name(passed) if passed is not None else "", number - 1
    return False


def _found(levels: Sequence[Level], loop: Loop, mask: _Mask, program: Program) -> CostlyOption:
    level = levels[-1]
    frame = level.frame
    is_labels = _is_of_labels(levels, mask.array, program)
    return CostlyOption(
        name="labels_searched" if is_labels else "array_searched",
        at=Frame(frame.file, frame.function, mask.node.lineno, level.file.text_of(mask.node)),
        lines=(frame,),
        words={
            "array": ast.unparse(mask.array),
            "key": mask.key,
            "loop": f"{frame.file.rpartition('/')[2]}:{loop.line}",
        },
    )
