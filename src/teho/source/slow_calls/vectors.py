"""Writes an expression for one pair of numbers as an expression for all pairs at once."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

__all__ = ["Vectors", "is_truth"]

_COMPARES: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_OPERATORS: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_OF_TWO = {"min": "minimum", "max": "maximum"}
_DEEPEST = 6


class Vectors:
    """Writes expressions for all pairs of two numbers.

    Args:
        rows: the name of the first number.
        columns: the name of the second number.
        values: the names to which the loops give a value, and their values; None: not clear.
        target: the name of the array that the loops fill.
        numpy: the name of NumPy.
    """

    def __init__(
        self,
        rows: str,
        columns: str,
        values: Mapping[str, ast.expr | None],
        target: str,
        numpy: str,
    ) -> None:
        self._indexes, self._values = (rows, columns), values
        self._target, self._np = target, numpy
        self.used: set[str] = set()
        """Which of the two numbers were used."""

    def of(self, node: ast.expr, *, guarded: bool = False, depth: int = 0) -> str | None:
        """Return the text for all pairs; None if there is none.

        Args:
            node: an expression for one pair.
            guarded: whether Python computes it only for some pairs: indexes may be too large.
            depth: number of names that led to it.
        """
        parts: list[str | None] = []
        match node:
            case ast.Constant(value=bool() | int() | float()):
                return ast.unparse(node)
            case ast.Name(id=name):
                return self._of_name(name, guarded=guarded, depth=depth)
            case ast.Subscript():
                return self._of_part(node, guarded=guarded)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                sign = _COMPARES.get(type(operator), "")
                parts = [self.of(one, guarded=guarded, depth=depth) for one in (left, right)]
                return _joined(parts, f" {sign} ") if sign else None
            case ast.BoolOp(op=operator, values=values) if all(map(is_truth, values)):
                sign = " & " if isinstance(operator, ast.And) else " | "
                parts = [
                    self.of(one, guarded=guarded or number > 0, depth=depth)
                    for number, one in enumerate(values)
                ]
                return _joined(parts, sign)
            case ast.UnaryOp(op=operator, operand=inner):
                text = self.of(inner, guarded=guarded, depth=depth)
                if isinstance(operator, ast.Not):
                    return f"~{text}" if text and is_truth(inner) else None
                return f"-{text}" if text and isinstance(operator, ast.USub) else None
            case ast.BinOp(left=left, op=operator, right=right):
                sign = _OPERATORS.get(type(operator), "")
                parts = [self.of(one, guarded=guarded, depth=depth) for one in (left, right)]
                return _joined(parts, f" {sign} ") if sign else None
            case ast.IfExp(test=test, body=body, orelse=other) if is_truth(test):
                parts = [
                    self.of(test, guarded=guarded, depth=depth),
                    self.of(body, guarded=True, depth=depth),
                    self.of(other, guarded=True, depth=depth),
                ]
                text = _joined(parts, ", ")
                return f"{self._np}.where{text}" if text else None
            case ast.Call(func=ast.Name(id="abs"), args=[inner], keywords=[]):
                text = self.of(inner, guarded=guarded, depth=depth)
                return f"abs({text})" if text else None
            case ast.Call(func=ast.Name(id=name), args=[one, two], keywords=[]) if name in _OF_TWO:
                parts = [self.of(each, guarded=guarded, depth=depth) for each in (one, two)]
                text = _joined(parts, ", ")
                return f"{self._np}.{_OF_TWO[name]}{text}" if text else None
        return None

    def _of_name(self, name: str, *, guarded: bool, depth: int) -> str | None:
        if name in self._indexes:
            self.used.add(name)
            return name
        if name == self._target:
            return None
        if name in self._values:
            value = self._values[name]
            if value is None or depth > _DEEPEST:
                return None
            return self.of(value, guarded=guarded, depth=depth + 1)
        return name

    def _of_part(self, node: ast.Subscript, *, guarded: bool) -> str | None:
        """Return the text of `x[i]`, `x[i, j]` or `x[i][j]`."""
        indexes: list[ast.expr] = []
        value: ast.expr = node
        while isinstance(value, ast.Subscript):
            part = value.slice
            indexes[:0] = part.elts if isinstance(part, ast.Tuple) else [part]
            value = value.value
        if not isinstance(value, ast.Name) or value.id in {*self._values, self._target}:
            return None
        names = [one.id for one in indexes if isinstance(one, ast.Name)]
        if len(names) < len(indexes) or not set(names) <= set(self._indexes) or len(names) > 2:
            return None
        self.used.update(names)
        array = f"{self._np}.asarray({value.id})"
        if guarded and len(names) > 1:
            return None
        if guarded:  # Python does not come to the indexes that are too large
            return f"{array}[{self._np}.minimum({names[0]}, len({value.id}) - 1)]"
        return f"{array}[{', '.join(names)}]"


def is_truth(node: ast.expr) -> bool:
    """Return whether an expression is certainly true or false, and no number."""
    match node:
        case ast.Compare() | ast.Constant(value=bool()):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return is_truth(inner)
        case ast.BoolOp(values=values):
            return all(map(is_truth, values))
    return False


def _joined(parts: list[str | None], sign: str) -> str | None:
    known = [one for one in parts if one is not None]
    return f"({sign.join(known)})" if len(known) == len(parts) else None
