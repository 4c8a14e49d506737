"""Which arrays of a program have integers or booleans, and which products multiply them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from teho.source.options.numbers import NumberTypes, Origin
from teho.source.options.uses import name_of
from teho.source.program import Place

__all__ = ["IntegerProducts"]

_PRODUCTS = frozenset(("numpy.dot", "numpy.matmul", "numpy.inner"))
_KEEP = (ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr)
"""Operators whose result has integers if both sides have."""
_OF_NUMBERS = frozenset(("int", "len", "bool"))
"""Functions of Python that return a number, and not an array."""


class IntegerProducts(NumberTypes):
    """Finds products of matrices of integers or booleans.

    A product has integers only if both of its sides have. Other computations may make real numbers
    of integers, such as a division or a mean.
    """

    same_type = NumberTypes.same_type - {"round"}
    computing = frozenset(("sum", "prod", "min", "max", "trace", "ptp"))
    same_type_functions = re.compile(r"numpy\.(abs|where|roll|pad|cumsum|concatenate|[vh]?stack)")
    computing_functions = re.compile(
        r"numpy\.(sum|prod|min|max|amin|amax|add|subtract|multiply|maximum|minimum|clip|dot|matmul"
        r"|inner|outer|diff)"
    )

    def _operands(self, node: ast.AST, place: Place) -> Iterator[ast.expr]:
        pair: tuple[ast.expr, ...] = ()
        match node:
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                pair = left, right
            case ast.Call(func=called, args=[left, right], keywords=[]):
                if name_of(called, place, self._program) in _PRODUCTS:
                    pair = left, right
            case ast.Call(func=ast.Attribute(value=left, attr="dot"), args=[right], keywords=[]):
                pair = left, right
        if pair and self._of_all([(one, place) for one in pair], 0) is not None:
            yield from pair

    def _find(self, node: ast.expr, place: Place, depth: int) -> Origin | None:
        if isinstance(node, ast.BinOp) and not isinstance(node.op, _KEEP):
            return None
        if isinstance(node, ast.Call):
            name = name_of(node.func, place, self._program)
            if _is_of_numbers(node) or (name and not name.startswith(("numpy.", "."))):
                return None  # an array of another library
        return super()._find(node, place, depth)

    def _is_number(self, node: ast.expr, place: Place) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        if isinstance(node, ast.Call) and _is_of_numbers(node):
            return True
        return super()._is_number(node, place)


def _is_of_numbers(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _OF_NUMBERS
