"""Slices that certainly give a small part of an array, such as `[top : top + 64]`."""

from __future__ import annotations

import ast

from teho.patterns import lazy_pattern
from teho.source.parsed import Function, dotted_name

__all__ = ["is_window"]

_BORDER = lazy_pattern("pad|margin|border|halo|ghost|edge|offset|delay|trim|burn|warm|skip|lag")
"""Names of places at which almost the whole array begins."""
_SHAPES = frozenset(("shape", "size", "ndim"))


def is_window(part: ast.Slice, function: Function) -> bool:
    """Return whether a slice begins at a place that varies, and has a length of its own.

    A slice may also give almost the whole array: without its border (`[1:-1]`), around its middle
    (`[n // 2 - 50 : n // 2 + 50]`), or in the box of its content. Such slices are no windows.

    Args:
        part: the slice.
        function: the function that it is in.
    """
    if part.lower is None or part.upper is None or isinstance(part.lower, ast.Constant):
        return False
    if _BORDER.search(ast.unparse(part.lower)):
        return False
    lower, upper = _value(part.lower, function), _value(part.upper, function)
    if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Mult):
        return _is_next(lower, upper)  # [number * size : (number + 1) * size]
    begins = {ast.dump(part.lower), ast.dump(lower)}
    terms = {ast.dump(one): one for one in _terms(upper)}
    if isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Sub):
        begins.add(ast.dump(_terms(lower)[0]))  # [middle - size : middle + size]
    sizes = [one for text, one in terms.items() if text not in begins]
    if not sizes or len(sizes) == len(terms):
        return False
    return not (
        _is_of_whole(sizes, function)
        or _is_in_the_middle(lower, sizes, function)
        or _is_of_one_call(part.lower, sizes, function)
    )


def _value(node: ast.expr, function: Function) -> ast.expr:
    """Return the value of a name that gets only one value."""
    given = function.assigned.get(node.id, []) if isinstance(node, ast.Name) else []
    if len(given) != 1 or given[0].value is None or given[0].loop is not None:
        return node
    return given[0].value


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return the terms of a sum that are added."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        added = _terms(node.right) if isinstance(node.op, ast.Add) else []
        return [*_terms(node.left), *added]
    return [node]


def _is_next(lower: ast.expr, upper: ast.BinOp) -> bool:
    """Return whether two products have one equal factor, and the other factors differ by one."""
    if not isinstance(lower, ast.BinOp) or not isinstance(lower.op, ast.Mult):
        return False
    for number, size in ((lower.left, lower.right), (lower.right, lower.left)):
        for after, same in ((upper.left, upper.right), (upper.right, upper.left)):
            terms = [ast.dump(one) for one in _terms(after)]
            if ast.dump(same) == ast.dump(size) and ast.dump(number) in terms and len(terms) > 1:
                return True
    return False


def _is_of_whole(sizes: list[ast.expr], function: Function) -> bool:
    """Return whether a size is made of the length of an array."""
    names = [one for size in sizes for one in ast.walk(size) if isinstance(one, ast.Name)]
    values = [*sizes, *(_value(one, function) for one in names)]
    return any(
        (isinstance(one, ast.Attribute) and one.attr in _SHAPES)
        or (isinstance(one, ast.Call) and dotted_name(one.func) == "len")
        for value in values
        for one in ast.walk(value)
    )


def _is_in_the_middle(lower: ast.expr, sizes: list[ast.expr], function: Function) -> bool:
    """Return whether a slice begins at a part of a length that is not its own size."""
    own = {name for size in sizes for name in _names(size)}
    inner = (_value(one, function) for one in ast.walk(lower) if isinstance(one, ast.Name))
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, (ast.Div, ast.FloorDiv))
        and not _names(one.left) <= own
        for value in (lower, *inner)
        for one in ast.walk(value)
    )


def _is_of_one_call(lower: ast.expr, sizes: list[ast.expr], function: Function) -> bool:
    """Return whether one call gave the begin and the size, such as the box of the content."""
    values = [_value(lower, function), *(_value(one, function) for one in sizes)]
    return len({id(one) for one in values}) < len(values)


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
