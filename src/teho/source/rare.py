"""Conditions that are true only in few iterations of a loop, such as `step % 100 == 0`."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.constants import number_of
from teho.source.parsed import dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.uses import LOOPS

__all__ = ["MOST", "Rare", "Rarity"]

MOST = 0.5
"""A condition is rare if it is true in at most this share of the iterations."""
_MOST_ITEMS = 10
_UNKNOWN = 0.5
"""Assumed share of an iteration in a loop of unknown length: it has at least two."""
_COUNTER = lazy_pattern(
    r"(^|_)(step|iter|iteration|it|epoch|batch_idx|batch_index|batch_nb|generation)s?$"
)
"""Names of counters that a library, or another function, increases by one each time."""
_PROGRESS = frozenset(("tqdm", "trange", "track", "progress_bar", "notebook_tqdm"))


class Rare(NamedTuple):
    """How rarely a condition is true."""

    share: float
    """Share of the iterations in which it is true at most, from 0 to 1."""
    is_sure: bool
    """False: the run may have had other settings, or a loop of another length."""


class _Counter(NamedTuple):
    """A number that grows by the same amount in each iteration."""

    step: int
    length: float | None
    """Number of its values; None: not known."""
    is_sure: bool
    """Whether this is certain; the length may still be a default."""
    is_length_sure: bool = False


class Rarity:
    """Finds out how rarely conditions are true.

    Args:
        loops: the loops around the conditions, the innermost first.
        at: the function that they are in.
        purity: the program.
    """

    def __init__(self, loops: Sequence[ast.AST], at: Place, purity: Purity) -> None:
        self._loops = [one for one in loops if isinstance(one, LOOPS)]
        self._at, self._purity = at, purity

    def of(self, test: ast.expr, *, is_true: bool = True, depth: int = 0) -> Rare | None:
        """Return how rarely a condition is true, or false; None if it may be so often."""
        found = self._of(test, is_true=is_true, depth=depth)
        return found if found and found.share <= MOST else None

    def _of(self, test: ast.expr, *, is_true: bool, depth: int) -> Rare | None:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.of(test.operand, is_true=not is_true, depth=depth)
            case ast.BoolOp():
                parts = [self.of(one, is_true=is_true, depth=depth) for one in test.values]
                return _any(parts) if isinstance(test.op, ast.Or) is is_true else _all(parts)
            case ast.BinOp(op=ast.Mod()) if not is_true:  # `if step % 100: continue`
                return self._of_remainder(test, 1)
            case ast.Compare(ops=[operator], comparators=[right]):
                return self._of_compared(test.left, operator, right, is_true=is_true)
            case ast.Name() if depth < 2:
                given = self._at.function.assigned.get(test.id, [])
                if len(given) == 1 and given[0].value is not None and given[0].loop is None:
                    return self.of(given[0].value, is_true=is_true, depth=depth + 1)
        return None

    def _of_compared(
        self, left: ast.expr, operator: ast.cmpop, right: ast.expr, *, is_true: bool
    ) -> Rare | None:
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self._of_items(left, right) if isinstance(operator, ast.In) is is_true else None
        if isinstance(left, ast.Constant):
            left, right = right, left
        is_equal = isinstance(operator, ast.Eq)
        is_remainder = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod)
        if is_equal or isinstance(operator, ast.NotEq):
            if is_equal is not is_true:
                return None
            if isinstance(left, ast.BinOp) and is_remainder:
                return self._of_remainder(left, 1)
            counter = self._counter(left)
            return self._once(counter) if counter and self._stays(right) else None
        if isinstance(operator, (ast.Lt, ast.LtE)) and is_true and is_remainder:
            most = number_of(right, self._at, self._purity)
            hits = most.value + isinstance(operator, ast.LtE) if most else 0
            if isinstance(left, ast.BinOp) and hits == int(hits) >= 1:
                return self._of_remainder(left, int(hits))
        return None

    def _of_remainder(self, node: ast.BinOp, hits: int) -> Rare | None:
        """Return how rarely the remainder of a counter has one of some values."""
        every = number_of(node.right, self._at, self._purity)
        counter = self._counter(node.left)
        if every is None or counter is None or every.value < 1 or every.value != int(every.value):
            return None
        different = int(every.value) // math.gcd(int(every.value), counter.step)
        share = hits / different
        if counter.length:  # of 7 iterations, 3 have a multiple of 3
            share = hits * math.ceil(counter.length / different) / counter.length
        return Rare(min(1.0, share), every.is_sure and counter.is_sure)

    def _of_items(self, left: ast.expr, right: ast.expr) -> Rare | None:
        counter = self._counter(left)
        if counter is None:
            return None
        items = self._items(right)
        if items is None:
            return None
        once = self._once(counter)
        return Rare(items * once.share, is_sure=once.is_sure) if items <= _MOST_ITEMS else None

    def _items(self, node: ast.expr) -> int | None:
        """Return the number of items of a collection that the source has."""
        if isinstance(node, ast.Name):
            given = [
                one
                for function in (self._at.function, self._at.function.module)
                for one in function.assigned.get(node.id, [])
            ]
            value = given[0].value if len(given) == 1 and given[0].loop is None else None
            return self._items(value) if value is not None else None
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return len(node.elts)
        return None

    @staticmethod
    def _once(counter: _Counter) -> Rare:
        """Return how rarely a counter has one certain value."""
        if counter.length is None:
            return Rare(_UNKNOWN, is_sure=False)
        return Rare(1 / counter.length, counter.is_length_sure)

    def _counter(self, node: ast.expr) -> _Counter | None:
        """Return the counter of an expression such as `step + 1`; None if it is none."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            is_shifted = isinstance(node.right, ast.Constant)
            return self._counter(node.left) if is_shifted else None
        name = dotted_name(node)
        if not name:
            return None
        for loop in self._loops:
            if isinstance(loop, (ast.For, ast.AsyncFor)) and name in _names(loop.target):
                return self._of_loop(loop, name)
            if steps := _increases(loop, name):
                is_even = len(steps) == 1 and steps[0] > 0
                return _Counter(steps[0], None, is_sure=True) if is_even else None
        steps = [] if self._loops else _increases(self._at.function.node, name)
        if len(steps) == 1 and steps[0] > 0 and isinstance(node, ast.Attribute):
            return _Counter(steps[0], None, is_sure=True)  # more in each call
        is_given = isinstance(node, ast.Attribute) or name in self._at.function.params
        is_counter = is_given and _COUNTER.search(name.rpartition(".")[2])
        return _Counter(1, None, is_sure=False) if is_counter else None

    def _of_loop(self, loop: ast.For | ast.AsyncFor, name: str) -> _Counter | None:
        target, values = loop.target, loop.iter
        while isinstance(values, ast.Call) and _last_name(values) in _PROGRESS - {"trange"}:
            if not values.args:
                return None
            values = values.args[0]
        if not isinstance(values, ast.Call):
            return None
        called = _last_name(values)
        if isinstance(target, ast.Tuple):
            if called == "enumerate" and dotted_name(target.elts[0]) == name:
                return _Counter(1, None, is_sure=True)
            if called != "zip" or len(values.args) != len(target.elts):
                return None
            place = [dotted_name(one) for one in target.elts].index(name)
            values = values.args[place]
            called = _last_name(values) if isinstance(values, ast.Call) else ""
        if not isinstance(values, ast.Call) or called not in ("range", "trange", "count"):
            return None
        if called == "count" and len(values.args) > 1:
            return None
        numbers = [number_of(one, self._at, self._purity) for one in values.args]
        step = numbers[2] if len(numbers) == 3 else None
        if len(numbers) == 3 and (step is None or step.value < 1):
            return None
        every = int(step.value) if step else 1
        ends = numbers[:2] if called != "count" else []
        length = None
        if ends and all(ends):
            values_of = [one.value for one in ends if one]
            length = (values_of[-1] - (values_of[0] if len(values_of) > 1 else 0)) // every
        return _Counter(
            every,
            length if length and length >= 1 else None,
            is_sure=step is None or step.is_sure,
            is_length_sure=all(one.is_sure for one in numbers if one),
        )

    def _stays(self, node: ast.expr) -> bool:
        """Return whether a value is the same in all iterations, as far as the names show it."""
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return not any(
            names & {root_name(one) for one in _set_in(loop)} for loop in self._loops
        ) and not any(
            isinstance(one, ast.Call) and _last_name(one) != "len" for one in ast.walk(node)
        )


def _any(parts: Sequence[Rare | None]) -> Rare | None:
    """Return how rarely one of several conditions is true."""
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    return Rare(min(1.0, sum(one.share for one in known)), all(one.is_sure for one in known))


def _all(parts: Iterable[Rare | None]) -> Rare | None:
    """Return how rarely several conditions are true at once."""
    return min((one for one in parts if one is not None), default=None)


def _increases(around: ast.AST, name: str) -> list[int]:
    """Return the numbers that each iteration adds to a name; 0 if the name is set otherwise."""
    body = getattr(around, "body", ())
    added: dict[ast.expr, int] = {
        node.target: node.value.value
        for node in body
        if isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int)
    }
    return [added.get(one, 0) for one in _set_in(around) if dotted_name(one) == name]


def _set_in(loop: ast.AST) -> Iterable[ast.expr]:
    return (
        one
        for one in ast.walk(loop)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store)
    )


def _names(target: ast.expr) -> list[str]:
    return [dotted_name(one) for one in ast.walk(target) if isinstance(one, ast.Name)]


def _last_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
