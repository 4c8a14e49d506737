"""Finds loops that count elements one at a time: `table[t, p] += 1`.

Each iteration reads and writes one element of an array, which takes about as long as an operation
on hundreds of elements. `bincount` counts all elements with one call.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.options.uses import name_of
from teho.source.parsed import Loop
from teho.source.program import Place, Program
from teho.source.slow_calls.loop_parts import imported_name
from teho.source.stack import Level

__all__ = ["find_counted_singly"]

_ZEROS = lazy_pattern(r"(numpy|torch)\.(zeros|zeros_like)")
_TO_NUMBER = frozenset(("long", "item", "int"))
_FLAT = lazy_pattern(r".*\.(view\(-1\)|reshape\(-1\)|flatten\(\))")
_NUMBERED = ("range", "enumerate", "zip")
_LEAST_ITERATIONS = 30


class _Index(NamedTuple):
    """An index of the element that a loop counts."""

    values: str
    """The values of this index in all iterations, as code."""
    is_number: bool
    """Whether the loop turns each value into one number."""


def find_counted_singly(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the statement on a stack that counts one element in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files.
    """
    level = levels[-1]
    function, line = level.function, level.frame.line
    for loop in function.loops:
        if not isinstance(loop.node, ast.For) or not loop.line <= line <= loop.last:
            continue
        match loop.node.body:
            case [ast.AugAssign(target=ast.Subscript() as part, op=ast.Add()) as statement]:
                pass
            case _:
                continue
        if not isinstance(statement.value, ast.Constant) or statement.value.value != 1:
            continue
        if not may_iterate(loop, function, _LEAST_ITERATIONS):
            return None
        table, indices = _table(part)
        library = _library(table, level, program)
        found = [_index(one, loop) for one in indices]
        known = [one for one in found if one is not None]
        if not library or len(known) < len(found) or not 1 <= len(known) <= 2:
            return None
        if len(known) == 1 and not known[0].is_number:
            return None  # the index may be an array, or the place in a table with two axes
        frame = level.frame
        text = level.file.line_text(loop.line).rstrip(":")
        at = Frame(frame.file, frame.function, loop.line, text)
        return CostlyOption(
            name="counted_singly",
            at=at,
            lines=(frame,),
            words={
                "file": frame.file.rpartition("/")[2],
                "loop": str(loop.line),
                "table": ast.unparse(table),
                "new": _counted(ast.unparse(table), known, library, level),
            },
        )
    return None


def _table(part: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
    """Return the table and the indices of `table[a, b]` or `table[a][b]`."""
    indices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    if isinstance(part.value, ast.Subscript) and len(indices) == 1:
        table, first = _table(part.value)
        return table, [*first, *indices]
    return part.value, list(indices)


def _library(table: ast.expr, level: Level, program: Program) -> str:
    """Return the library that made a table; empty: it may be no array."""
    text, owner = ast.unparse(table), level.function.owner
    if isinstance(table, ast.Name):
        functions = [level.function]
    else:
        every = level.function.module.every()
        functions = [one for one in every if one.owner is owner and owner is not None]
    made = {
        name_of(node.value.func, Place(level.place.path, function), program)
        if isinstance(node.value, ast.Call)
        else ""
        for function in functions
        for node in function.nodes
        if isinstance(node, ast.Assign) and text in map(ast.unparse, node.targets)
    }
    libraries = {name.partition(".")[0] if _ZEROS.fullmatch(name) else "" for name in made}
    return libraries.pop() if len(libraries) == 1 else ""


def _index(node: ast.expr, loop: Loop) -> _Index | None:
    """Return an index that is an item of a loop, or of an array in the order of the loop."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[]) if name in _TO_NUMBER:
            pass
        case ast.Call(func=ast.Name(id="int"), args=[value], keywords=[]):
            pass
        case _:
            values = _values(node, loop)
            return _Index(values, is_number=False) if values else None
    values = _values(value, loop)
    return _Index(values, is_number=True) if values else None


def _values(node: ast.expr, loop: Loop) -> str:
    """Return the code of the items that an expression is one of; empty: it is not clear."""
    if not isinstance(loop.node, ast.For):
        return ""
    match loop.node.target, loop.node.iter, node:
        case (
            ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
            ast.Call(func=ast.Name(id="zip"), args=[one, other]),
            ast.Name(id=name),
        ) if name in (first, second):
            return ast.unparse(one if name == first else other)
        case (
            ast.Name(id=first),
            ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"))]),
            ast.Subscript(value=ast.Name(id=values), slice=ast.Name(id=name)),
        ) if name == first:
            return values
        case ast.Name(id=first), items, ast.Name(id=name) if name == first:
            is_made = isinstance(items, ast.Call) and ast.unparse(items.func) in _NUMBERED
            return "" if is_made else ast.unparse(items)
    return ""


def _counted(table: str, indices: Sequence[_Index], library: str, level: Level) -> str:
    """Return the statement that counts all elements."""
    module = imported_name(library, level.function, library)
    if library == "torch":
        codes = [
            f"{one.values}.long()"
            if _FLAT.fullmatch(one.values)
            else f"{module}.as_tensor({one.values}).long()"
            for one in indices
        ]
        size, shaped = f"{table}.numel()", f".view_as({table})"
    else:
        codes = [f"{module}.asarray({one.values}, dtype=int)" for one in indices]
        size, shaped = f"{table}.size", f".reshape({table}.shape)"
    places = codes[0]
    if len(codes) > 1:
        places = f"{codes[0]} * {table}.shape[1] + {codes[1]}"
    else:
        shaped = ""
    return f"{table} += {module}.bincount({places}, minlength={size}){shaped}"
