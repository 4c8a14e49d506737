"""Finds rows of a Hugging Face data set of which a program uses only some columns.

Reading a row decodes all of its columns. Whether the other columns are large is not in the source:
the probe notes their sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import dotted_name
from teho.source.stack import Level

__all__ = ["find_unused_columns"]

_DATASETS = lazy_pattern(r"/datasets/(arrow_dataset|formatting/\w+|table)\.py$")
_CHOOSE = frozenset(
    (
        *("select_columns", "remove_columns", "set_format", "with_format", "set_transform"),
        *("with_transform", "formatted_as", "to_iterable_dataset", "to_pandas", "to_polars"),
    )
)
"""Methods that choose columns, or change how rows are read."""


class _Row(NamedTuple):
    """A row that a program reads."""

    table: ast.expr
    """The data set: `self.table`."""
    name: str
    """The name of the row; empty if the program takes one column of it directly."""
    column: str
    node: ast.AST
    """The expression that reads the row, or the loop."""


def find_unused_columns(levels: Sequence[Level], frames: Sequence[Frame]) -> CostlyOption | None:
    """Return the line on a stack that reads rows, if the program uses only certain columns.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
    """
    level = levels[-1]
    inner = next((one for one, outer in pairwise(frames) if outer == level.frame), None)
    if inner is None or not _DATASETS.search(inner.file):
        return None
    row = _row(level)
    name = dotted_name(row.table) if row is not None else ""
    if row is None or not name:
        return None
    scope = level.function.owner if name.startswith("self.") else level.function.node
    nodes = list(ast.walk(scope)) if scope is not None else []
    every = ast.walk(level.function.module.node)
    if any(isinstance(one, ast.Attribute) and one.attr in _CHOOSE for one in every):
        return None
    made = _made(name, nodes)
    used = _used(row, level)
    if made is None or not used or _has_other_uses(name, row, nodes):
        return None
    columns = ", ".join(map(repr, sorted(used)))
    frame = level.frame
    text = ast.unparse(row.table) if isinstance(row.node, ast.For) else ast.unparse(row.node)
    return CostlyOption(
        name="rows_with_all_columns",
        at=Frame(frame.file, frame.function, frame.line, text),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "line": str(made.lineno),
            "used": columns,
            "old": level.file.text_of(made),
            "new": f"{level.file.text_of(made)}.select_columns([{columns}])",
        },
    )


def _row(level: Level) -> _Row | None:
    """Return the row that a level reads; None if it reads something else, such as a column."""
    node = level.node
    for loop in level.function.loops:
        match loop.node:
            case ast.For(target=ast.Name(id=name), iter=table) if table is node:
                return _Row(table, name, "", loop.node)
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return None
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return None
    for one in level.function.nodes:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                return _Row(node.value, name, "", node)
            case ast.Subscript(value=value, slice=ast.Constant(value=str(column))):
                if value is node:
                    return _Row(node.value, "", column, node)
    return None


def _used(row: _Row, level: Level) -> set[str]:
    """Return the columns of a row that the program uses; empty if this is not known."""
    if not row.name:
        return {row.column}
    if len(level.function.assigned.get(row.name, ())) != 1:
        return set()
    whole = ast.walk(level.function.node)
    columns, known = set(), set()
    loads = []
    for node in whole:
        match node:
            case ast.Subscript(
                value=ast.Name(id=name) as of, slice=ast.Constant(value=str(column))
            ) if name == row.name and isinstance(node.ctx, ast.Load):
                columns.add(column)
                known.add(id(of))
            case ast.Name(id=name, ctx=ast.Load()) if name == row.name:
                loads.append(node)
    return columns if all(id(one) in known for one in loads) else set()


def _made(name: str, nodes: Sequence[ast.AST]) -> ast.expr | None:
    """Return the only value of a data set, if it is the result of a call or a name."""
    values = list(_values(name, nodes))
    is_one = len(values) == 1 and isinstance(values[0], (ast.Call, ast.Name, ast.Subscript))
    return values[0] if is_one else None


def _values(name: str, nodes: Sequence[ast.AST]) -> Iterator[ast.expr | None]:
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if dotted_name(target) == name:
                        yield value
                    elif any(dotted_name(one) == name for one in ast.walk(target)):
                        yield None
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                if dotted_name(target) == name:
                    yield None


def _has_other_uses(name: str, row: _Row, nodes: Sequence[ast.AST]) -> bool:
    """Return whether the program uses the data set for more than this row and its length."""
    lengths = {
        id(one)
        for node in nodes
        if isinstance(node, ast.Call) and dotted_name(node.func) in ("len", "range")
        for one in node.args
    }
    lengths |= {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in ("num_rows", "__len__")
    }
    return any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and dotted_name(node) == name
        and node is not row.table
        and id(node) not in lengths
        for node in nodes
    )
