"""How often a loop runs, as far as the source says."""

from __future__ import annotations

import ast

from teho.source.changes import named_values
from teho.source.parsed import Function, Loop, root_name

__all__ = ["length", "may_iterate", "number_of"]

_SAME_LENGTH = frozenset(("enumerate", "sorted", "reversed", "list", "tuple", "tqdm", "iter"))
_OF_DICTIONARIES = frozenset(("items", "keys", "values"))
_GROW = frozenset(("append", "extend", "insert", "add", "update", "setdefault", "pop", "remove"))
_DEEPEST = 4


def may_iterate(loop: Loop, function: Function, least: int) -> bool:
    """Return whether a loop may have many iterations: also if the source does not say how many.

    Args:
        loop: the loop.
        function: the function that it is in.
        least: what counts as many.
    """
    count = None if loop.iterable is None else length(loop.iterable, function)
    return count is None or count >= least


def length(node: ast.expr, function: Function, depth: int = 0) -> int | None:
    """Return the number of items of a collection; None: the source does not say it.

    Args:
        node: the collection.
        function: the function that it is in.
        depth: number of names that led to this expression.
    """
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            has_stars = any(isinstance(one, ast.Starred) for one in node.elts)
            return None if has_stars else len(node.elts)
        case ast.Dict():
            return None if None in node.keys else len(node.keys)
        case ast.Constant(value=str(text)):
            return len(text)
        case ast.Call(func=ast.Name(id="range")):
            values = [_number(one, function) for one in node.args]
            known = [one for one in values if one is not None]
            return len(range(*known)) if len(known) == len(values) and all(known[2:3]) else None
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _SAME_LENGTH:
            return length(first, function, depth)
        case ast.Call(func=ast.Attribute(value, attr)) if attr in _OF_DICTIONARIES:
            return length(value, function, depth)
        case ast.Name() if depth < _DEEPEST:
            found = _assigned(node.id, function)
            return length(found[0], found[1], depth + 1) if found else None
    return None


def number_of(node: ast.expr, function: Function) -> float | None:
    """Return a number that the source has, also by its name; None: it does not say the number."""
    if isinstance(node, ast.Name):
        found = _assigned(node.id, function)
        node = found[0] if found else node
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (int, float)) else None


def _number(node: ast.expr, function: Function) -> int | None:
    value = number_of(node, function)
    return value if isinstance(value, int) else None


def _assigned(name: str, function: Function) -> tuple[ast.expr, Function] | None:
    """Return the only value of a name, and the function that gives it; None: it is not clear."""
    outer: Function | None = function
    while outer is not None and not outer.knows(name):
        outer = outer.parent
    if outer is None or name in outer.params or len(outer.assigned.get(name, ())) != 1:
        return None
    for node in outer.nodes:
        if not isinstance(node, ast.Assign):
            continue
        for target, value in named_values(node):
            if isinstance(target, ast.Name) and target.id == name:
                found = value if target in node.targets else _part(node, name)
                return None if found is None or _grows(name, outer) else (found, outer)
    return None


def _part(node: ast.Assign, name: str) -> ast.expr | None:
    """Return what a name gets of `a, b = 1, 2`."""
    (target, *others) = node.targets
    if others or not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return None
    pairs = zip(target.elts, node.value.elts, strict=False)
    return next((value for one, value in pairs if root_name(one) == name), None)


def _grows(name: str, function: Function) -> bool:
    """Return whether a collection may get more items later."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in _GROW and root_name(node) == name
        for node in ast.walk(function.node)
    )
