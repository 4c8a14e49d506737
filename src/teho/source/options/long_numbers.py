"""Which arrays of a program have extended precision, such as `np.longdouble`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.patterns import lazy_pattern
from teho.source.options.numbers import NumberTypes, Origin
from teho.source.options.uses import name_of
from teho.source.program import Place

__all__ = ["LongNumbers"]


class LongNumbers(NumberTypes):
    """Finds computations with numbers of more than 64 bits.

    A result has extended precision if one of its arrays has it. Functions such as `sin` are slow
    too: NumPy has no vector code for these numbers.
    """

    same_type_functions = lazy_pattern(
        r"numpy\.(where|roll|pad|concatenate|[vh]?stack|real|imag|broadcast_to|linspace|abs)"
    )
    computing_functions = lazy_pattern(
        r"numpy\.(?:a?(?:sin|cos|tan)h?|arc(?:sin|cos|tan)h?|arctan2|hypot|exp2?|expm1|log(?:2|10|1p)?"
        r"|sqrt|cbrt|power|square|mod|fmod|remainder|floor|rint|cumsum|cumprod)|"
        + NumberTypes.computing_functions.pattern
    )

    def _operands(self, node: ast.AST, place: Place) -> Iterator[ast.expr]:
        if isinstance(node, ast.BinOp):
            yield node
        else:
            yield from super()._operands(node, place)

    def _find(self, node: ast.expr, place: Place, depth: int) -> Origin | None:
        if isinstance(node, ast.List):
            return self._of_arguments(node.elts, place, depth)
        if isinstance(node, ast.Tuple):
            return self._of_all([(one, place) for one in node.elts], depth)
        if isinstance(node, ast.Call) and name_of(node.func, place, self._program) in _NARROW:
            return None
        return super()._find(node, place, depth)

    def _of_arguments(
        self, arguments: Sequence[ast.expr], place: Place, depth: int
    ) -> Origin | None:
        """Return the type of a computation: that of its widest array."""
        found = (self._of(one, place, depth) for one in arguments)
        return next((one for one in found if one is not None), None)


_NARROW = frozenset(("float", "int", "round", "bool", "str", "len"))
"""Functions of Python whose result has no extended precision."""
