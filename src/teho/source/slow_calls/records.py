"""Finds loops that compute with the rows of a table one by one, each as a dictionary.

`table.to_pylist()` makes an object of Python for each value. If the loop only computes numbers from
the columns of its row and adds them to arrays, NumPy can compute with whole columns instead.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, dotted_name
from teho.source.stack import Level

__all__ = ["find_records"]

_FUNCTIONS = frozenset(("int", "float", "min", "max", "abs", "round", "bool"))
_LIBRARIES = ("pyarrow", "pandas", "polars")
_MOST_COLUMNS = 6
_MAKERS = ("zeros", "ones", "full", "empty")


class _Rows(NamedTuple):
    """A loop over the rows of a table."""

    loop: ast.For
    table: ast.expr
    columns: Sequence[str]
    sums: Sequence[ast.AugAssign]


def find_records(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the loop over rows that the innermost function of a stack executes; None: none.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    for node in level.function.nodes:
        if not isinstance(node, ast.For):
            continue
        if not node.lineno <= level.frame.line <= (node.end_lineno or node.lineno):
            continue
        rows = _rows(node, level.function)
        if rows is not None:
            return _found(rows, level)
    return None


def _rows(loop: ast.For, function: Function) -> _Rows | None:
    table = _table(loop.iter, function)
    row = loop.target.id if isinstance(loop.target, ast.Name) else ""
    if table is None or not row or loop.orelse:
        return None
    columns: dict[str, None] = {}
    inside: set[int] = set()
    for node in (inner for one in loop.body for inner in ast.walk(one)):
        match node:
            case ast.Subscript(
                value=ast.Name(id=name) as whole, slice=ast.Constant(value=str() as column)
            ) if name == row and isinstance(node.ctx, ast.Load):
                columns[column] = None
                inside.add(id(whole))
    bound: set[str] = set()
    sums: list[ast.AugAssign] = []
    if not _is_simple(loop.body, function, bound, sums):
        return None
    names = [node for one in loop.body for node in ast.walk(one) if isinstance(node, ast.Name)]
    loads = [node for node in names if node.id == row]
    targets = [node.target.value for node in sums if isinstance(node.target, ast.Subscript)]
    added = {one.id for one in targets if isinstance(one, ast.Name)}
    if sum(node.id in added for node in names) > len(targets):
        return None  # it depends on the rows before
    is_only_read = all(id(node) in inside for node in loads)
    is_fit = 0 < len(columns) <= _MOST_COLUMNS and all(one.isidentifier() for one in columns)
    return _Rows(loop, table, list(columns), sums) if is_only_read and is_fit and sums else None


def _table(items: ast.expr, function: Function) -> ast.expr | None:
    """Return the table whose rows an expression gives as dictionaries."""
    if isinstance(items, ast.Name):
        found = assigned_value(items.id, function)
        items = found[0] if found is not None else items
    imported = {
        name.partition(".")[0] for one in function.module.every() for name in one.imports.values()
    }
    if imported.isdisjoint(_LIBRARIES):
        return None
    match items:
        case ast.Call(func=ast.Attribute(value=table, attr="to_pylist" | "to_dicts"), args=[]):
            return table
        case ast.Call(func=ast.Attribute(value=table, attr="to_dict"), args=[kind], keywords=[]):
            is_rows = isinstance(kind, ast.Constant) and kind.value == "records"
            return table if is_rows else None
        case ast.Call(
            func=ast.Attribute(value=table, attr="iter_rows" | "rows"),
            args=[],
            keywords=[ast.keyword(arg="named", value=ast.Constant(value=True))],
        ):
            return table
    return None


def _is_simple(
    body: Sequence[ast.stmt], function: Function, bound: set[str], sums: list[ast.AugAssign]
) -> bool:
    """Return whether statements only compute numbers of one row, and add them to arrays.

    Args:
        body: the statements.
        function: the function around them.
        bound: names that earlier statements of the iteration give a value; new ones are added.
        sums: gets the statements that add to arrays.
    """
    own = {
        node.id
        for one in body
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for one in body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if not _is_number(value, own - bound):
                    return False
                bound.add(name)
            case ast.AugAssign(target=ast.Subscript(value=whole), op=ast.Add(), value=value):
                parts = (one.target.slice, value) if isinstance(one.target, ast.Subscript) else ()
                if not _is_array(whole, function):
                    return False
                if not all(_is_number(part, own - bound) for part in parts):
                    return False
                sums.append(one)
            case ast.If(test=test, body=inner, orelse=others):
                is_number = _is_number(test, own - bound)
                if not is_number or not _is_simple(inner, function, set(bound), sums):
                    return False
                if not _is_simple(others, function, set(bound), sums):
                    return False
            case _:
                return False
    return True


def _is_number(node: ast.expr, unknown: set[str]) -> bool:
    """Return whether an expression only computes with numbers that are known in the iteration."""
    for one in ast.walk(node):
        match one:
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS:
                continue
            case ast.Name(id=name) if name not in unknown:
                continue
            case ast.Constant() | ast.Tuple() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                continue
            case ast.BoolOp() | ast.Subscript() | ast.Attribute():
                continue
            case ast.expr_context() | ast.operator() | ast.unaryop() | ast.cmpop() | ast.boolop():
                continue
            case _:
                return False
    return True


def _is_array(node: ast.expr, function: Function) -> bool:
    """Return whether a name has a new array of NumPy."""
    found = assigned_value(node.id, function) if isinstance(node, ast.Name) else None
    match found:
        case (ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=maker)), _):
            outer: Function | None = function
            while outer is not None and module not in outer.imports:
                outer = outer.parent
            return outer is not None and outer.imports[module] == "numpy" and maker in _MAKERS
    return False


def _found(rows: _Rows, level: Level) -> CostlyOption:
    frame, loop, function = level.frame, rows.loop, level.function
    arrays = {one: f"{one}_values" if function.knows(one) else one for one in rows.columns}
    comma = "," if len(arrays) == 1 else ""
    texts = ", ".join(f'"{one}"' for one in arrays)
    name = dotted_name(rows.table)
    code = [f"`table = {ast.unparse(rows.table)}`"] if not name else []
    columns = f"({name or 'table'}[c].to_numpy() for c in ({texts}{comma}))"
    code.append(f"`{', '.join(arrays.values())}{comma} = {columns}`")
    first = rows.sums[0]
    row = loop.target.id if isinstance(loop.target, ast.Name) else ""
    target, value = first.target, _Columns(row, arrays).visit(copy.deepcopy(first.value))
    whole = ast.unparse(target.value) if isinstance(target, ast.Subscript) else ""
    place = _Columns(row, arrays).visit(copy.deepcopy(getattr(target, "slice", target)))
    places = ast.unparse(place)
    is_several = isinstance(place, ast.Tuple) and not places.startswith("(")
    new = f"np.add.at({whole}, {f'({places})' if is_several else places}, {ast.unparse(value)})"
    text = level.file.line_text(loop.lineno).rstrip(":")
    return CostlyOption(
        name="records_one_by_one",
        at=Frame(frame.file, frame.function, loop.lineno, text),
        lines=(frame,),
        words={"code": " and ".join(code), "new": new, "old": ast.unparse(first)},
    )


class _Columns(ast.NodeTransformer):
    """Makes `row["a"]` to the array of the column.

    Args:
        row: the name of the row.
        arrays: the name of the array of each column.
    """

    def __init__(self, row: str, arrays: Mapping[str, str]) -> None:
        self._row, self._arrays = row, arrays

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as column)):
                if name == self._row:
                    return ast.Name(self._arrays[column], ast.Load())
        self.generic_visit(node)
        return node
