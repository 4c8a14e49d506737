"""Finds HDF5 data sets whose compressed chunks are larger than the cache for chunks.

HDF5 reads and compresses whole chunks. If a loop writes a chunk in several parts, the chunk stays
in the cache until it is complete. A chunk that is larger than the cache is decompressed and
compressed again for each part.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.constants import number_of
from teho.source.options.uses import value_text
from teho.source.parsed import Function, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, argument

__all__ = ["READS", "DataSet", "data_set_of", "find_large_chunks", "whole_number"]

READS = lazy_pattern(r"/h5py/_hl/dataset\.py:(Dataset\.)?(__[gs]etitem__|(read|write)_direct)$")
"""Functions that read or write a part of a data set."""
_CREATE = ("create_dataset", "require_dataset")
_PARAMETERS = ("name", "shape", "dtype", "data")
_CACHE_BYTES = 1 << 20
_NEW_CACHE_BYTES = 8 << 20
"""From HDF5 2.0 on."""
_GOOD_CHUNK_BYTES = 1 << 19
_LEAST_PARTS = 4
"""With fewer parts of a chunk, smaller chunks save little."""
_MOST_SLOTS = 100
"""The cache has 521 places, of which chunks may need the same ones."""
_TYPE = lazy_pattern(r"[<>=|]?([fiubc])(\d{1,2})|(?:numpy\.)?(?:u?int|float|complex)(\d{1,3})_?")
_TYPES = {
    **dict.fromkeys(("float", "int", "double", "numpy.double", "d"), 8),
    **dict.fromkeys(("f", "numpy.single", "single"), 4),
    **dict.fromkeys(("bool", "numpy.bool_", "numpy.bool"), 1),
}
_OF_DEFAULT = 4
"""Bytes of a number if a call gives only a shape: h5py then chooses `f4`."""
_DEEPEST = 4


class DataSet(NamedTuple):
    """A data set that the program makes."""

    call: ast.Call
    at: Place
    given: dict[str, ast.expr]
    """The arguments of the call, by name."""
    chunk: tuple[int, ...]
    item_bytes: int


def find_large_chunks(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the chunks of a data set that a loop on a stack writes or reads in small parts.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    level = levels[-1]
    if not any(READS.search(f"{one.file}:{one.function}") for one in frames):
        return None
    if any(b"rdcc" in line for one in levels for line in one.file.lines):
        return None
    for node in ast.walk(level.node) if level.node is not None else ():
        if not isinstance(node, ast.Subscript):
            continue
        made = data_set_of(node.value, levels, len(levels) - 1, purity, 0)
        if made is not None:
            return _found(node, made, levels, purity)
    return None


def data_set_of(
    node: ast.expr, levels: Sequence[Level], number: int, purity: Purity, depth: int
) -> DataSet | None:
    """Return the data set of an expression; None if its chunks are not known.

    Args:
        node: the expression.
        levels: the program's functions on a stack, the outermost first.
        number: the level that has the expression.
        purity: the program.
        depth: number of names that led to this expression.
    """
    place = levels[number].place
    if depth > _DEEPEST:
        return None
    match node:
        case ast.Name(id=name) if name in place.function.params:
            given = argument(levels, number, name)
            if given is None:
                return None
            return data_set_of(given, levels, number - 1, purity, depth + 1)
        case ast.Name(id=name):
            function: Union[Function, None] = place.function
            while function is not None and not function.knows(name):
                function = function.parent
            values = [one.value for one in function.assigned[name]] if function else []
            if len(values) != 1 or values[0] is None or function is None:
                return None
            if isinstance(values[0], ast.Call):
                return _made(values[0], Place(place.path, function), purity)
            return data_set_of(values[0], levels, number, purity, depth + 1)
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return _by_name(key, levels, purity)
    return None


def _by_name(key: str, levels: Sequence[Level], purity: Purity) -> DataSet | None:
    """Return the only data set with a name that the files on the stack make."""
    found: dict[int, DataSet] = {}
    for level in levels:
        for function in level.function.module.every():
            for node in function.nodes:
                if not _is_creation(node) or not isinstance(node, ast.Call):
                    continue
                name = node.args[0] if node.args else None
                if isinstance(name, ast.Constant) and name.value == key.rpartition("/")[2]:
                    made = _made(node, Place(level.place.path, function), purity)
                    if made is None:
                        return None
                    found[id(node)] = made
    return next(iter(found.values())) if len(found) == 1 else None


def _is_creation(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _CREATE
    return False


def _made(call: ast.Call, at: Place, purity: Purity) -> DataSet | None:
    """Return the data set that a call makes; None if it is not compressed, or not known."""
    if not _is_creation(call) or not all(word.arg for word in call.keywords):
        return None
    given = dict(zip(_PARAMETERS, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    packing, chunks, kind = given.get("compression"), given.get("chunks"), given.get("dtype")
    if packing is None or (isinstance(packing, ast.Constant) and packing.value is None):
        return None
    if isinstance(chunks, ast.Name):
        values = at.function.assigned.get(chunks.id) or at.function.module.assigned.get(chunks.id)
        chunks = values[0].value if values and len(values) == 1 else None
    if not isinstance(chunks, (ast.Tuple, ast.List)) or (kind is None and "data" in given):
        return None
    sides = [whole_number(one, at, purity) for one in chunks.elts]
    known = tuple(one for one in sides if one is not None)
    item_bytes = _OF_DEFAULT if kind is None else _item_bytes(kind, at, purity)
    if len(known) < len(sides) or not known or item_bytes is None:
        return None
    return DataSet(call, at, given, known, item_bytes)


def whole_number(node: ast.AST, at: Place, purity: Purity) -> int | None:
    """Return the whole number that an expression certainly is; None: it is not known."""
    found = number_of(node, at, purity)
    return int(found.value) if found is not None and found.is_sure else None


def _item_bytes(kind: ast.expr, at: Place, purity: Purity) -> int | None:
    text = value_text(kind, at, purity.program)
    match = _TYPE.fullmatch(text)
    if match is None:
        return _TYPES.get(text)
    return int(match[2]) if match[2] else int(match[3]) // 8


def _found(
    node: ast.Subscript, made: DataSet, levels: Sequence[Level], purity: Purity
) -> CostlyOption | None:
    level = levels[-1]
    part = _part(node, made, level, purity)
    if part is None or not any(one.loops() for one in levels):
        return None
    pairs = list(zip(made.chunk, part, strict=True))
    parts = math.prod(math.ceil(chunk / size) for chunk, size in pairs)
    touched = math.prod(math.ceil(size / chunk) for chunk, size in pairs)
    used_bytes = touched * math.prod(made.chunk) * made.item_bytes
    if parts < _LEAST_PARTS or used_bytes <= _CACHE_BYTES or touched > _MOST_SLOTS:
        return None
    is_large = used_bytes > _NEW_CACHE_BYTES
    chunks = made.given["chunks"]
    frame = level.frame
    path = made.at.path
    function = made.at.function.name or "<module>"
    return CostlyOption(
        name="chunks_above_cache" if is_large else "chunks_above_old_cache",
        at=Frame(path, function, chunks.lineno, f"chunks={ast.unparse(chunks)}"),
        lines=(frame,),
        words={
            "needed_mb": f"{used_bytes / 1e6:.1f}",
            "parts": str(parts),
            "cache": f"{math.ceil(2 * used_bytes / (1 << 20))} * 2**20",
            "opened": _opened(node.value, level.function, level.place.path),
            "smaller": _smaller(part, made),
        },
    )


def _part(
    node: ast.Subscript, made: DataSet, level: Level, purity: Purity
) -> tuple[int, ...] | None:
    """Return the size of the part of each iteration; None if it is not known."""
    given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(given) > len(made.chunk):
        return None
    shape = made.given.get("shape")
    whole = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else []
    sizes: list[int] = []
    counts = False
    for axis, chunk in enumerate(made.chunk):
        one = given[axis] if axis < len(given) else ast.Slice()
        if isinstance(one, ast.Slice) and one.lower is None and one.upper is None:
            side = whole_number(whole[axis], made.at, purity) if axis < len(whole) else None
            sizes.append(side or chunk)
            continue
        size = _length(one, level, purity)
        if size is None or size < 1:
            return None
        counts = counts or _counts(one.lower if isinstance(one, ast.Slice) else one, level)
        sizes.append(size)
    return tuple(sizes) if counts else None


def _length(one: ast.expr, level: Level, purity: Purity) -> int | None:
    """Return the number of elements of `i`, or of `i:i + n`."""
    match one:
        case ast.Name():
            return 1
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper, step=None):
            upper = _value(upper, level)
            match upper:
                case ast.Call(func=ast.Name(id="min"), args=[first, second]):
                    pair = [_value(first, level), _value(second, level)]
                    upper = next((one for one in pair if isinstance(one, ast.BinOp)), upper)
            begin = ast.unparse(lower)
            match upper, _value(lower, level):
                case ast.BinOp(left=left, op=ast.Add(), right=right), _ if (
                    ast.unparse(left) == begin
                ):
                    return whole_number(right, level.place, purity)
                case (
                    ast.BinOp(left=next_one, op=ast.Mult(), right=size),
                    ast.BinOp(left=count, op=ast.Mult(), right=same),
                ) if ast.unparse(next_one) == f"{ast.unparse(count)} + 1" and (
                    ast.unparse(size) == ast.unparse(same)
                ):
                    return whole_number(size, level.place, purity)
    return None


def _value(node: ast.expr, level: Level) -> ast.expr:
    """Return what a name of a function stands for, if it gets a value only once."""
    given = level.function.assigned.get(node.id, []) if isinstance(node, ast.Name) else []
    is_one = len(given) == 1 and given[0].loop is None and given[0].value is not None
    return given[0].value or node if is_one else node


def _counts(begin: ast.expr | None, level: Level) -> bool:
    """Return whether an index counts: parts in another order need more chunks at a time."""
    begin = _value(begin, level) if begin is not None else None
    names = {one.id for one in ast.walk(begin) if isinstance(one, ast.Name)} if begin else set()
    for name in names:
        for one in level.function.assigned.get(name, []):
            match one.value if one.loop is not None else None:
                case ast.Call(func=ast.Name(id="range" | "enumerate" | "trange" | "tqdm")):
                    return True
    return any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and root_name(node.target) in names
        for node in level.function.nodes
    )


def _opened(node: ast.expr, function: Function, path: str, depth: int = 0) -> str:
    """Return where the file of an expression is opened; empty if it is not clear."""
    for value in _values(root_name(node), function) if depth < _DEEPEST else ():
        match value:
            case ast.Call(func=ast.Attribute(attr="File") | ast.Name(id="File")):
                return f" at {path.rpartition('/')[2]}:{value.lineno}"
            case ast.Call(func=of) | (ast.Subscript() as of):
                return _opened(of, function, path, depth + 1)
    return ""


def _values(name: str, function: Function) -> Iterator[ast.expr]:
    outer: Union[Function, None] = function
    while outer is not None and not outer.knows(name):
        outer = outer.parent
    given = outer.assigned.get(name, []) if outer is not None else []
    return (one.value for one in given if one.value is not None)


def _smaller(part: Sequence[int], made: DataSet) -> str:
    """Return chunks that have whole parts, and that are not too small."""
    sides = [*part]
    each_bytes = math.prod(sides) * made.item_bytes
    axis = next(
        n for n, (one, chunk) in enumerate(zip(sides, made.chunk, strict=True)) if one < chunk
    )
    times = max(1, min(_GOOD_CHUNK_BYTES // each_bytes, made.chunk[axis] // sides[axis]))
    sides[axis] *= times
    return f"({', '.join(map(str, sides))}{',' * (len(sides) == 1)})"
