"""Which statement gave a name the value that an expression reads."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.source.parsed import Assigned, Function

__all__ = ["reaching"]


def reaching(
    function: Function, name: str, node: ast.Name | None
) -> tuple[Sequence[Assigned], bool]:
    """Return what may give a name the value that an expression of a function reads.

    The places of the function, and whether it may be the value of the parameter of this name.
    `x = f(a)`, `x = g(x)`: the `x` in `g(x)` has its value from the first line. This is sure if all
    statements that give the name a value are executed one after the other.

    Args:
        function: the function.
        name: the name.
        node: the expression; None: not known.
    """
    given = function.assigned.get(name, [])
    every = given, name in function.params
    body = function.node.body
    if node is None or not isinstance(body, list) or not given:
        return every
    line = getattr(node, "lineno", 0)
    lines = {one.lineno: one for one in body if isinstance(one, (ast.Assign, ast.AnnAssign))}
    around = next((one for one in body if one.lineno <= line <= (one.end_lineno or 0)), None)
    is_plain = all(one.line in lines and one.loop is None for one in given)
    if around is None or not is_plain:
        return every  # under a condition, or in a loop
    before = [one for one in given if one.line < around.lineno]
    if not before and name not in function.params:
        return every
    return before[-1:], not before
