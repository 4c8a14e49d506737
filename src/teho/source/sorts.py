"""Finds collections that are sorted as a whole, of which only the first or last few are used.

The stack says that the sort took the time. The source says that all uses of its result cut the same
few elements out of it, and how many these are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple

from teho.model.in_source import Whole, WholeUse
from teho.model.stack import Frame
from teho.source.constants import number_of
from teho.source.counts import length
from teho.source.options.uses import name_of
from teho.source.parsed import Function
from teho.source.purity import Purity
from teho.source.sorts_instead import Cut, instead_of
from teho.source.stack import Level
from teho.source.uses import Uses

__all__ = ["find_sorted"]

_MOST = 1000
"""More elements are not few in most collections."""
_PART = 10
"""The collection has at least this number of elements for each one that is used."""
_SORTS = frozenset(("numpy.argsort", "numpy.sort", "torch.sort", "torch.argsort", ".sort_values"))


def find_sorted(
    levels: Sequence[Level], purity: Purity, uses_of: Callable[[Function], Uses]
) -> Whole | None:
    """Return the sort on a stack of which only a few elements are used; None if there is none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
        uses_of: returns the uses of names in a function.
    """
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        if isinstance(level.node, ast.Call):
            name = name_of(level.node.func, level.place, purity.program)
            is_builtin = name == "sorted" and not level.function.module.knows("sorted")
            if is_builtin or name in _SORTS:
                return _of_call(levels[: number + 1], level.node, name, purity, uses_of)
    return None


def _of_call(
    levels: Sequence[Level],
    call: ast.Call,
    name: str,
    purity: Purity,
    uses_of: Callable[[Function], Uses],
) -> Whole | None:
    level = levels[-1]
    search = _Cuts(level, purity, uses_of(level.function), is_pair=name == "torch.sort")
    cuts = search.after(call, is_item=name != "torch.sort")
    if not cuts or len({one[4:] for one in cuts}) > 1:  # they cut different parts
        return None
    cut = max(cuts, key=lambda one: one.number)
    whole = _sorted_of(call, name)
    size = length(whole, level.function) if whole is not None else None
    is_few = 0 < cut.number <= _MOST and cut.is_sure
    if whole is None or not is_few or (size is not None and size < _PART * cut.number):
        return None
    original = call if cut.is_named else cut.node
    target = search.target(original)
    instead = instead_of(call, name, cut, search.item, target, level)
    if not instead:
        return None
    loops = level.loops()
    loop = loops[-1] if loops else level.as_loop()
    file, frame = level.file, level.frame
    line = max(loop.line, 1)
    return Whole(
        calls=tuple(one.frame for one in levels),
        loop=Frame(frame.file, frame.function, line, file.line_text(line).rstrip(":")),
        last=loop.last,
        use=WholeUse.SORTED,
        name=file.text_of(whole),
        how=name,
        key=file.text_of(original),
        made=(Frame(frame.file, frame.function, cut.node.lineno, file.text_of(cut.node)),),
        instead=instead,
        target=target if len(instead) > 1 else "",
        count=cut.number,
        size=size,
    )


def _sorted_of(call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call sorts."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if name == ".sort_values":
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    return call.args[0] if call.args else None


class _Cuts:
    """Follows the result of a sort through a function.

    Args:
        level: the function.
        purity: the program.
        uses: the uses in the function.
        is_pair: whether the result has the values and their indices.
    """

    def __init__(self, level: Level, purity: Purity, uses: Uses, *, is_pair: bool) -> None:
        self._level, self._purity, self._uses = level, purity, uses
        self._is_pair = is_pair
        self._names = 0
        self.item = ""
        """What the sort's own statement takes of the pair: `values` or `indices`."""

    def target(self, node: ast.AST) -> str:
        """Return the name that a statement gives an expression as its value; empty if none."""
        statement = self._uses.parent(node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""

    def after(self, node: ast.AST, *, is_item: bool, is_reversed: bool = False) -> list[Cut] | None:
        """Return the cuts of all uses of a value; None if a use needs more than a cut.

        Args:
            node: the value.
            is_item: whether it is sorted itself, and not a pair of values and indices.
            is_reversed: whether its order was reversed.
        """
        parent = self._uses.parent(node)
        match parent:
            case ast.Subscript(value=value, slice=part) if value is node:
                if not is_item:
                    item = {"0": "values", "1": "indices"}.get(ast.unparse(part))
                    return self._of_item(parent, item)
                if _reverses(part):
                    again = self.after(parent, is_item=True, is_reversed=True)
                    return None if is_reversed else again
                cut = self._cut(parent, part, is_reversed=is_reversed)
                return [cut] if cut else None
            case ast.Attribute(attr=attr) if not is_item:
                return self._of_item(parent, attr if attr in ("values", "indices") else None)
            case ast.Attribute(attr="head" | "tail" as attr) if not self._is_pair:
                call = self._uses.parent(parent)
                is_called = isinstance(call, ast.Call) and call.func is parent
                return self._of_rows(call, attr) if is_called else None
            case ast.Assign(targets=[ast.Name(id=name)]) if self._names < 2:
                return self._of_names(parent, [name], is_item=is_item, is_reversed=is_reversed)
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=values), ast.Name(id=indices)])]):
                pair = [one for one in (values, indices) if self._uses.of(parent, one) != []]
                return None if is_item else self._of_names(parent, pair, is_item=True)
        return None

    def _of_item(self, node: ast.AST, item: str | None) -> list[Cut] | None:
        if item is None:
            return None
        if not self._names:
            self.item = item
        return self.after(node, is_item=True)

    def _of_names(
        self, statement: ast.AST, names: Sequence[str], *, is_item: bool, is_reversed: bool = False
    ) -> list[Cut] | None:
        found: list[Cut] = []
        self._names += 1
        for name in names:
            uses = self._uses.of(statement, name)
            for one in uses or ():
                cuts = self.after(one, is_item=is_item, is_reversed=is_reversed)
                if cuts is None:
                    return None
                found += cuts
            if not uses:
                return None
        self._names -= 1
        return found

    def _of_rows(self, call: ast.AST | None, attr: str) -> list[Cut] | None:
        if not isinstance(call, ast.Call) or call.keywords or len(call.args) > 1:
            return None
        count = call.args[0] if call.args else ast.Constant(5)
        number = number_of(count, self._level.place, self._purity)
        if number is None:
            return None
        return [
            Cut(
                call, ast.unparse(count), int(number.value), number.is_sure,
                is_end=attr == "tail", is_named=self._names > 0,
            )
        ]  # fmt: skip

    def _cut(self, node: ast.Subscript, part: ast.expr, *, is_reversed: bool) -> Cut | None:
        is_last_axis = isinstance(part, ast.Tuple)
        if isinstance(part, ast.Tuple):
            *others, part = part.elts
            if not all(isinstance(one, ast.Slice) and _is_all(one) for one in others):
                return None
        found = _size(part) if isinstance(part, ast.Slice) else _place(part)
        number = number_of(found.size, self._level.place, self._purity) if found else None
        if found is None or number is None or number.value != int(number.value):
            return None
        return Cut(
            node, ast.unparse(found.size), int(number.value), number.is_sure, found.is_end,
            is_reversed, found.skips, not isinstance(part, ast.Slice), is_last_axis,
            self._names > 0,
        )  # fmt: skip


class _Part(NamedTuple):
    size: ast.expr
    is_end: bool
    skips: str = ""


def _size(part: ast.Slice) -> _Part | None:
    """Return the number of elements of `[:k]`, `[1:k]` or `[-k:]`."""
    lower, upper = part.lower, part.upper
    if part.step is not None:
        return None
    if upper is None:
        if isinstance(lower, ast.UnaryOp) and isinstance(lower.op, ast.USub):
            return _Part(lower.operand, is_end=True)
        return None
    skipped = lower.value if isinstance(lower, ast.Constant) else None
    if isinstance(upper, ast.UnaryOp) or (lower is not None and skipped not in (0, 1, 2)):
        return None
    return _Part(upper, is_end=False, skips=str(skipped or ""))


def _place(part: ast.expr) -> _Part | None:
    """Return the number of elements of `[0]` or `[-1]`."""
    text = ast.unparse(part)
    return _Part(ast.Constant(1), is_end=text == "-1") if text in ("0", "-1") else None


def _is_all(part: ast.Slice) -> bool:
    return part.lower is None and part.upper is None and part.step is None


def _reverses(part: ast.expr) -> bool:
    """Return whether a subscript only reverses the order: `[::-1]`, `[:, ::-1]`."""
    return ast.unparse(part).strip("()").replace(" ", "") in ("::-1", ":,::-1")
