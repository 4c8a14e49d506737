"""Finds HDF5 data sets that a loop decompresses as a whole for each part that it reads.

HDF5 reads and decompresses whole chunks. If each chunk has all values of an axis, a part of this
axis, `cube[:, :, low:high]`, needs all chunks of the data set.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.parsed import root_name
from teho.source.purity import Purity
from teho.source.slow_calls.chunks import READS, DataSet, data_set_of, whole_number
from teho.source.stack import Level, argument

__all__ = ["find_whole_read"]

_MOST_BYTES = 4 << 30
"""A larger data set may not fit in memory."""
_LEAST_PARTS = 4
_CHUNKS_IN_CACHE = 1
"""A data set of one chunk may stay in the cache of HDF5."""


def find_whole_read(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the part of a data set on a stack for which HDF5 decompresses the whole data set.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if not any(READS.search(f"{one.file}:{one.function}") for one in frames):
        return None
    inner = len(levels) - 1
    level = levels[inner]
    for node in ast.walk(level.node) if level.node is not None else ():
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        made = data_set_of(node.value, levels, inner, purity, 0)
        if made is None:
            continue
        shape = _shape(made, purity)
        is_all = shape is not None and _needs_all(node, made, shape)
        return _found(node, made, shape, levels) if shape is not None and is_all else None
    return None


def _shape(made: DataSet, purity: Purity) -> tuple[int, ...] | None:
    given = made.given.get("shape")
    if not isinstance(given, (ast.Tuple, ast.List)):
        return None
    sides = [whole_number(one, made.at, purity) for one in given.elts]
    known = tuple(one for one in sides if one)
    return known if len(known) == len(sides) == len(made.chunk) else None


def _needs_all(node: ast.Subscript, made: DataSet, shape: Sequence[int]) -> bool:
    """Return whether a part needs all chunks of its data set, and is not the whole data set."""
    given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(given) > len(shape) or math.prod(shape) * made.item_bytes > _MOST_BYTES:
        return False
    chunks = math.prod(
        math.ceil(side / chunk) for side, chunk in zip(shape, made.chunk, strict=True)
    )
    cut = [axis for axis, one in enumerate(given) if not _is_whole(one)]
    is_cut = bool(cut) and all(made.chunk[axis] >= shape[axis] for axis in cut)
    return is_cut and chunks > _CHUNKS_IN_CACHE and not any(map(_is_ellipsis, given))


def _is_whole(one: ast.expr) -> bool:
    return isinstance(one, ast.Slice) and one.lower is None and one.upper is None


def _is_ellipsis(one: ast.expr) -> bool:
    return isinstance(one, ast.Constant)


def _found(
    node: ast.Subscript, made: DataSet, shape: Sequence[int], levels: Sequence[Level]
) -> CostlyOption | None:
    level = levels[-1]
    opened = _opened(node.value, levels, len(levels) - 1)
    if opened is None:
        return None
    value, number = opened
    at = levels[number]
    file = _file_of(value, at)
    if file is None:
        return None
    is_named = value is not node.value
    before = value if is_named else file
    loop = next(_loops_after(before.lineno, number, levels, is_there=not is_named), None)
    if loop is None:
        return None
    frame = level.frame
    return CostlyOption(
        name="data_set_read_again" if is_named else "data_set_of_loop_read_again",
        at=Frame(frame.file, frame.function, node.lineno, level.file.text_of(node)),
        lines=(frame,),
        words={
            "set": at.file.text_of(value),
            "set_at": f"{at.frame.file.rpartition('/')[2]}:{value.lineno}",
            "megabytes": f"{math.prod(shape) * made.item_bytes / 1e6:.0f}",
            "chunk": ast.unparse(made.given["chunks"]),
            "loop": loop,
        },
    )


def _loops_after(
    line: int, number: int, levels: Sequence[Level], *, is_there: bool
) -> Iterator[str]:
    """Yield the places of the loops with many iterations that begin after a line of a function.

    Args:
        line: the line.
        number: the level with the line; the loops of the levels before it are around the line.
        levels: the program's functions on the stack, the outermost first.
        is_there: whether only loops of this function count.
    """
    for place, level in enumerate(levels):
        if place < number or (is_there and place != number):
            continue
        for loop in level.loops():
            is_after = place > number or loop.line > line
            if is_after and may_iterate(loop, level.function, _LEAST_PARTS):
                yield f"{level.frame.file.rpartition('/')[2]}:{loop.line}"


def _opened(node: ast.expr, levels: Sequence[Level], number: int) -> tuple[ast.expr, int] | None:
    """Return the expression that gets a data set from its file, and the level that it is in."""
    while isinstance(node, ast.Name):
        level = levels[number]
        if node.id in level.function.params:
            given = argument(levels, number, node.id)
            if given is None:
                return None
            node, number = given, number - 1
            continue
        values = [one.value for one in level.function.assigned.get(node.id, []) if one.value]
        is_one = len(values) == 1 and isinstance(values[0], ast.Subscript)
        return (values[0], number) if is_one else None
    return (node, number) if isinstance(node, ast.Subscript) else None


def _file_of(value: ast.expr, level: Level) -> ast.Call | None:
    """Return the call that opens the file of a data set; None: not known, or not only to read."""
    name = root_name(value)
    given = [one.value for one in level.function.assigned.get(name, [])]
    match given:
        case [ast.Call(func=ast.Attribute(attr="File") | ast.Name(id="File")) as call]:
            mode = call.args[1] if len(call.args) > 1 else None
            mode = next((one.value for one in call.keywords if one.arg == "mode"), mode)
            is_read = mode is None or (isinstance(mode, ast.Constant) and mode.value == "r")
            return call if is_read else None
    return None
