"""Whether a loop goes through the same items each time that it begins."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.parsed import Assigned, Function
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["Items", "part_of"]

_MAY_BE_STREAM = lazy_pattern("load|stream|iter|queue|gen|reader|batch|source|feed|env")
"""Names of objects that may give other items each time."""
_COLLECTIONS = frozenset(
    ("range", "sorted", "list", "tuple", "set", "frozenset", "dict", "enumerate", "zip", "reversed")
)
_OF_COLLECTIONS = frozenset(
    (
        *("items", "keys", "values", "iterrows", "itertuples", "groupby", "unique", "tolist"),
        *("split", "splitlines", "namelist", "infolist", "index", "columns", "argv"),
    )
)


class Items:
    """Finds iterables that give the same items each time.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
        argument: returns the expression that a caller gives for a parameter of a level.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        purity: Purity,
        argument: Callable[[int, str], ast.expr | None],
    ) -> None:
        self._levels, self._purity, self._program = levels, purity, purity.program
        self._argument = argument

    def is_collection(self, number: int, node: ast.expr, depth: int = 0) -> bool:
        """Return whether an iterable is known to give the same items each time."""
        function = self._levels[number].function
        match node:
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return True
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.Constant():
                return True
            case ast.Subscript():
                return self.is_collection(number, node.value, depth)
            case ast.Attribute():
                if node.attr in _OF_COLLECTIONS:
                    return True
                place = self._levels[number].place
                is_constant = self._purity.is_constant_attribute(node.attr, place)
                return is_constant and not _MAY_BE_STREAM.search(node.attr)
            case ast.Call():
                return self._makes_collection(number, node, depth)
            case ast.Name() if depth < 8:
                values = [
                    one.value
                    for one in self._given(number, node.id)
                    if one.value is not None and one.loop is None
                ]
                if values:
                    return all(self.is_collection(number, one, depth + 1) for one in values)
                argument = self._argument(number, node.id) if node.id in function.params else None
                if argument is not None:
                    return self.is_collection(number - 1, argument, depth + 1)
        return False

    def _given(self, number: int, name: str) -> Iterable[Assigned]:
        function: Function | None = self._levels[number].function
        while function is not None and not (name in function.assigned or name in function.params):
            function = function.parent
        return function.assigned.get(name, []) if function is not None else []

    def _makes_collection(self, number: int, call: ast.Call, depth: int) -> bool:
        place = self._levels[number].place
        called = self._program.called(call, place)
        if isinstance(called, str) and called in ("enumerate", "zip", "reversed"):
            return all(self.is_collection(number, one, depth + 1) for one in call.args)
        if isinstance(called, str) and "." not in called:
            return called in _COLLECTIONS
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_COLLECTIONS:
            return True
        if isinstance(called, Place) and _returns_list(called.function):
            return True
        return self._purity.is_pure(call, place)


class Part(NamedTuple):
    """A part of a collection, which begins or ends where the collection does: `x[i:]`."""

    whole: ast.expr
    bound: ast.expr
    """Where the part begins or ends: `i`."""


def part_of(one: Assigned) -> Part | None:
    """Return which part of a collection a loop goes through; None if it may end early.

    Args:
        one: how the loop gives a name its value.
    """
    loop = one.loop
    if loop is None or one.value is None:
        return None
    if any(isinstance(node, (ast.Break, ast.Return)) for node in ast.walk(loop.node)):
        return None
    return _part(one.value)


def _part(node: ast.expr) -> Part | None:
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, start]):
            part = _part(inner)  # each item has the same number in each part
            is_same = part is not None and ast.dump(part.bound) == ast.dump(start)
            return part if is_same else None
        case ast.Call(func=ast.Name(id="range"), args=[end]):
            return Part(ast.Constant(0), end)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant() as begin, end]):
            return Part(begin, end)
        case ast.Call(func=ast.Name(id="range"), args=[begin, end]):
            return Part(end, begin)
        case ast.Subscript(value=whole, slice=ast.Slice(lower=begin, upper=None, step=None)):
            return Part(whole, begin) if begin is not None else None
        case ast.Subscript(value=whole, slice=ast.Slice(lower=None, upper=end, step=None)):
            return Part(whole, end) if end is not None else None
    return None


def _returns_list(function: Function) -> bool:
    """Return whether a function returns a list, a tuple or a dictionary that it made."""
    returned = [
        node.value for node in function.nodes if isinstance(node, ast.Return) and node.value
    ]
    values = [
        given.value
        for value in returned
        for given in (
            function.assigned.get(value.id, [])
            if isinstance(value, ast.Name)
            else [Assigned(0, value, None)]
        )
    ]
    kinds = (ast.List, ast.ListComp, ast.Tuple, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)
    return bool(values) and all(isinstance(value, kinds) for value in values)
