"""Which values are known before an iteration of a loop begins."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["Known"]

_DEEPEST = 6


class Known:
    """Finds out whether values are known before an iteration of a loop begins.

    Args:
        levels: the program's functions on the stack, the outermost first.
        number: the level that has the loop.
        loop: the loop.
        purity: the program.
        bound: further names that are items, such as those of a comprehension.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        number: int,
        loop: Loop,
        purity: Purity,
        bound: Iterable[str] = (),
    ) -> None:
        self._levels, self._number, self._loop, self._purity = levels, number, loop, purity
        self._items = {
            one.id
            for one in ast.walk(getattr(loop.node, "target", loop.node))
            if isinstance(one, ast.Name)
        }.union(bound)

    def is_known(self, value: ast.expr, depth: int = 0) -> bool:
        """Return whether a value comes only from the loop's item and from what stays the same."""
        level = self._levels[self._number]
        for one in ast.walk(value):
            if isinstance(one, (ast.Await, ast.Yield, ast.Lambda, ast.NamedExpr)):
                return False
            if isinstance(one, ast.Call) and not self._purity.is_pure(one, level.place):
                return False
            if isinstance(one, ast.Name) and not self._is_known_name(one, depth):
                return False
        return True

    def _is_known_name(self, name: ast.Name, depth: int) -> bool:
        if name.id in self._items:
            return True
        function = self._levels[self._number].function
        inside = [
            one
            for one in function.assigned.get(name.id, [])
            if self._loop.first <= one.line <= self._loop.last
        ]
        if len(inside) == 1 and inside[0].value is not None and depth < _DEEPEST:
            return inside[0].loop is None and self.is_known(inside[0].value, depth + 1)
        if inside:
            return False
        changed = list(self._levels)
        changed[self._number] = self._levels[self._number]._replace(node=name)
        value = Inputs(changed, self._number, self._loop, self._purity).of_call(self._number)
        return value is Value.SAME
