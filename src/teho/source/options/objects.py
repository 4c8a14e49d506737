"""Which arrays and tables of a program have objects of Python instead of numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.patterns import lazy_pattern
from teho.source.options.numbers import NumberTypes, Origin
from teho.source.options.uses import name_of
from teho.source.parsed import Function, dotted_name
from teho.source.program import Place

__all__ = ["ObjectArrays"]

_TABLES = frozenset(("pandas.DataFrame", "pandas.Series"))
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_INDEXED = frozenset(("T", "loc", "iloc", "values"))
_KEEP = frozenset(("dropna", "head", "tail", "reset_index", "sort_values", "to_numpy"))


class ObjectArrays(NumberTypes):
    """Finds computations with arrays and columns whose elements are objects, but numbers.

    A result has objects if one of its arrays has them. That the elements are numbers follows from
    the statement: it has a floating-point number, or a division by a number.
    """

    same_type = NumberTypes.same_type | _KEEP
    computing = frozenset[str]()  # a sum or a mean of objects is one number
    same_type_functions = lazy_pattern(r"numpy\.(roll|concatenate|[vh]?stack)|pandas\.concat")
    computing_functions = lazy_pattern(r"(?!)")

    def _operands(self, node: ast.AST, place: Place) -> Iterator[ast.expr]:
        is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC)
        if isinstance(node, ast.BinOp) and is_sum and _has_numbers(node, place.function):
            yield from (node.left, node.right)

    def _find(self, node: ast.expr, place: Place, depth: int) -> Origin | None:
        match node:
            case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
                return self._of(element, place, depth)  # `a, b = (table[c] for c in names)`
            case ast.Attribute(value=whole, attr=attr) if attr in _INDEXED:
                return self._of(whole, place, depth)
            case ast.Call() if name_of(node.func, place, self._program) in _TABLES:
                words = {word.arg: word.value for word in node.keywords}
                first = node.args[0] if node.args else words.get("data")
                if "dtype" in words:
                    return self._origin(words["dtype"], place)
                return self._of(first, place, depth)
        return super()._find(node, place, depth)

    def _of_arguments(
        self, arguments: Sequence[ast.expr], place: Place, depth: int
    ) -> Origin | None:
        found = (self._of(one, place, depth) for one in arguments)
        return next((one for one in found if one is not None), None)

    def _of_name(self, name: str, place: Place, depth: int) -> Origin | None:
        if _has_new_columns(name, place.function):
            return None
        return super()._of_name(name, place, depth)


def _has_new_columns(name: str, function: Function) -> bool:
    """Return whether code may give a table columns of another type: `table["a"] = x`.

    In an array, a new element is an object too.
    """
    for node in ast.walk(function.module.node):
        match node:
            case ast.Subscript(value=whole, slice=part) if isinstance(node.ctx, ast.Store):
                is_table = isinstance(whole, ast.Attribute) and whole.attr in ("loc", "iloc", "at")
                owner = whole.value if isinstance(whole, ast.Attribute) and is_table else whole
                is_column = isinstance(part, (ast.Constant, ast.JoinedStr, ast.List, ast.Name))
                is_text = not (isinstance(part, ast.Constant) and isinstance(part.value, int))
                if dotted_name(owner) == name and (is_table or (is_column and is_text)):
                    return True
    return False


def _has_numbers(node: ast.expr, function: Function) -> bool:
    """Return whether the statement of an expression computes with numbers."""
    statements = [
        one
        for one in function.nodes
        if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr))
        and one.lineno <= node.lineno <= (one.end_lineno or one.lineno)
        and any(inner is node for inner in ast.walk(one))
    ]
    for inner in (inner for one in statements for inner in ast.walk(one)):
        match inner:
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ARITHMETIC):
                sides = [one for one in (left, right) if _number(one) is not None]
                is_divided = isinstance(op, ast.Div) and bool(sides)
                if is_divided or any(isinstance(_number(one), float) for one in sides):
                    return True
    return False


def _number(node: ast.expr) -> float | int | None:
    if isinstance(node, ast.UnaryOp):
        return _number(node.operand)
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
