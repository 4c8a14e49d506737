"""Which arrays of a program have integers or booleans, and which products multiply them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from teho.patterns import lazy_pattern
from teho.source.options.numbers import NumberTypes, Origin
from teho.source.options.uses import name_of
from teho.source.parsed import Function
from teho.source.program import Place

__all__ = ["IntegerProducts"]

_PRODUCTS = frozenset(("numpy.dot", "numpy.matmul", "numpy.inner"))
_KEEP = (
    ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr,
    ast.BitXor,
)  # fmt: skip
"""Operators whose result has integers if both sides have."""
_DRAWS = frozenset(
    ("integers", "randint", "random_integers", "poisson", "binomial", "geometric", "hypergeometric")
)
"""Functions of NumPy's generators that draw integers."""
_TESTS = lazy_pattern(
    r"numpy\.(isin|in1d|is(nan|finite|inf|close)|(not_)?equal|(greater|less)(_equal)?"
    r"|logical_(and|or|xor|not)|digitize|searchsorted|argsort|unpackbits|count_nonzero)"
)
"""Functions of NumPy whose result has booleans or integers, for all arguments."""
_OTHER_ARRAYS = lazy_pattern(
    r"(torch|tensorflow|keras|jax|cupy|dask|xarray|polars|sparse|numba\.cuda)\b|scipy\.sparse\b(?!\.(csgraph|linalg)\b)"
)
"""Libraries with arrays of their own, whose comparisons are not arrays of NumPy."""
_OF_NUMBERS = frozenset(("int", "len", "bool"))
"""Functions of Python that return a number, and not an array."""


class IntegerProducts(NumberTypes):
    """Finds products of matrices of integers or booleans.

    A product has integers only if both of its sides have. Other computations may make real numbers
    of integers, such as a division or a mean.
    """

    same_type = NumberTypes.same_type - {"round"}
    computing = frozenset(("sum", "prod", "min", "max", "trace", "ptp"))
    follows_loops = True
    same_type_functions = lazy_pattern(
        r"numpy\.(abs|where|roll|pad|cumsum|concatenate|[vh]?stack|tri[lu]|sign|tile|repeat)"
    )
    computing_functions = lazy_pattern(
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
        match node:
            case ast.BinOp(op=op) if not isinstance(op, _KEEP):
                return None
            case ast.Compare():
                is_array = not isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))
                is_own = is_array and not _has_other_arrays(place.function)
                return self._made_by(node, place) if is_own else None
            case ast.Call():
                name = name_of(node.func, place, self._program)
                if _is_of_numbers(node) or (name and not name.startswith(("numpy.", "."))):
                    return None  # an array of another library
                if not any(word.arg == "dtype" for word in node.keywords):
                    made = self._of_draw(node, name, place, depth)
                    if made is not None or name in ("numpy.where", "numpy.random.choice"):
                        return made
        return super()._find(node, place, depth)

    def _of_draw(self, call: ast.Call, name: str, place: Place, depth: int) -> Origin | None:
        """Return it for functions that make integers without a `dtype`."""
        method = name.rpartition(".")[2]
        is_drawn = name.startswith((".", "numpy.random."))
        if _TESTS.fullmatch(name) or (is_drawn and method in _DRAWS):
            return self._made_by(call, place)
        if is_drawn and method in ("choice", "permutation") and call.args:
            first = call.args[0]
            if _has_integers(first):
                return self._made_by(call, place)
            return self._of(first, place, depth)
        if name == "numpy.where" and len(call.args) == 3:  # the condition does not count
            return self._of_arguments(call.args[1:], place, depth)
        return None

    def _made_by(self, node: ast.expr, place: Place) -> Origin:
        """Return the place of an expression that makes integers or booleans."""
        text = " ".join(self._files[place.path].text_of(node).split())
        return Origin(place.path, node.lineno, text)

    def _is_number(self, node: ast.expr, place: Place) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        if isinstance(node, ast.Call) and _is_of_numbers(node):
            return True
        return super()._is_number(node, place)


def _is_of_numbers(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _OF_NUMBERS


def _has_integers(node: ast.expr) -> bool:
    """Return whether the source has integers, or a list of them."""
    if isinstance(node, ast.UnaryOp):
        return _has_integers(node.operand)
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(map(_has_integers, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _has_other_arrays(function: Function) -> bool:
    """Return whether a file imports a library whose comparisons are no arrays of NumPy."""
    imported = function.module.every()
    return any(_OTHER_ARRAYS.match(name) for one in imported for name in one.imports.values())
