"""Finds out which row of a table an expression has that makes a table of one row."""

from __future__ import annotations

import ast
from typing import NamedTuple, Union

from teho.source.options.uses import assigned_value
from teho.source.parsed import Function

__all__ = ["Row", "row_of"]

_INDEXERS = frozenset(("iloc",))
_ARRAYS = frozenset(("array", "asarray", "stack", "vstack", "DataFrame", "tensor"))
_SAME_ROW = frozenset(("to_numpy", "tolist", "copy"))
_DEEPEST = 6


class Row(NamedTuple):
    """A table of one row."""

    item: ast.expr
    """The row: `x[i]`, or a name."""
    source: ast.expr
    """The expression that the row is made from, without the calls of `transform` around it."""
    table: Union[ast.expr, None] = None
    """The table that has the row at `place`; None: it is not in the expression."""
    place: Union[ast.expr, None] = None


def row_of(node: ast.expr, function: Function, depth: int = 0) -> Row | None:
    """Return the row of an expression that certainly makes a table of one row.

    Args:
        node: the expression: `x[[i]]`, `x.iloc[i:i + 1]`, `row.reshape(1, -1)`, `[row]`.
        function: the function that it is in.
        depth: number of names and calls that led to it.
    """
    if depth > _DEEPEST:
        return None
    row = _row_of(node, function, depth)
    is_source = row is None or isinstance(node, ast.Name) or _transformed(node) is not None
    return row if row is None or is_source else row._replace(source=node)


def _transformed(node: ast.expr) -> ast.expr | None:
    """Return what `scaler.transform(x)` gets."""
    match node:
        case ast.Call(func=ast.Attribute(attr="transform"), args=[first]):
            return first
    return None


def _row_of(node: ast.expr, function: Function, depth: int) -> Row | None:
    match node:
        case ast.Name(id=name):
            found = assigned_value(name, function)
            is_here = found is not None and found[1] is function
            return row_of(found[0], function, depth + 1) if found and is_here else None
        case ast.List(elts=[ast.Starred()]) | ast.Tuple(elts=[ast.Starred()]):
            return None
        case ast.List(elts=[one]) | ast.Tuple(elts=[one]):
            return _item(one)
        case ast.Subscript(value=value, slice=part):
            return _of_subscript(value, part)
        case ast.Attribute(
            value=ast.Call(func=ast.Attribute(value=row, attr="to_frame")), attr="T"
        ):
            return _item(row)
        case ast.Call(func=ast.Attribute(value=row, attr="reshape"), args=given):
            return _item(row) if _is_one_row(given) else None
        case ast.Call(func=ast.Attribute(attr="atleast_2d"), args=[row]):
            return row_of(row, function, depth + 1) or _item(row)
        case ast.Call(func=ast.Attribute(attr="expand_dims"), args=[row, axis]):
            return _item(row) if _is(axis, 0) else None
        case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in _ARRAYS:
            return row_of(first, function, depth + 1)
    scaled = _transformed(node)
    inner = row_of(scaled, function, depth + 1) if scaled is not None else None
    return Row(node, inner.source) if inner is not None else None


def _of_subscript(value: ast.expr, part: ast.expr) -> Row | None:
    """Return the row of `x[[i]]`, `x[i:i + 1]`, `x.iloc[[i]]`, or `row[None]`."""
    parts = part.elts if isinstance(part, ast.Tuple) else [part]
    rest = parts[1:]
    if not all(isinstance(one, ast.Slice) and not (one.lower or one.upper) for one in rest):
        return None
    table = value
    if isinstance(value, ast.Attribute) and value.attr in _INDEXERS:
        table = value.value
    elif isinstance(value, ast.Attribute) and value.attr == "loc":
        return (
            Row(value, value)
            if isinstance(parts[0], ast.List) and len(parts[0].elts) == 1
            else None
        )
    match parts[0]:
        case ast.List(elts=[ast.Name() as index]):
            return Row(value, value, table, index)
        case ast.Slice(lower=ast.Name(id=name) as index, upper=ast.BinOp() as upper, step=None):
            ends = {f"{name} + 1", f"1 + {name}"}
            return Row(value, value, table, index) if ast.unparse(upper) in ends else None
        case ast.Constant(value=None):
            return _item(value)
        case ast.Attribute(attr="newaxis"):
            return _item(value)
    return None


def _item(row: ast.expr) -> Row:
    """Return the row of an expression: `x[i]` is a row of `x`."""
    item = row
    while True:
        match item:
            case ast.Attribute(value=inner, attr="values"):
                item = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]) if name in _SAME_ROW:
                item = inner
            case _:
                break
    match item:
        case ast.Subscript(
            value=ast.Attribute(value=table, attr="iloc"), slice=ast.Name() as index
        ):
            return Row(item, item, table, index)
        case ast.Subscript(value=ast.Attribute()):
            return Row(item, item)
        case ast.Subscript(value=table, slice=ast.Name() as index):
            return Row(item, item, table, index)
    return Row(item, item)


def _is_one_row(shape: list[ast.expr]) -> bool:
    """Return whether the arguments of `reshape` are `1, -1`."""
    if len(shape) == 1 and isinstance(shape[0], ast.Tuple):
        shape = shape[0].elts
    return len(shape) == 2 and _is(shape[0], 1) and ast.unparse(shape[1]) == "-1"


def _is(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number
