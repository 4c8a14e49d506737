"""Finds results that the program computes more often than it uses them.

The stack says which expression took the time. The source says where the result of its statement is
used: only in an `if` that is rarely true, only after the loop, or nowhere. If Teho cannot be sure,
it reports nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import msgspec

from teho.model.in_source import Need, Unneeded
from teho.model.stack import Frame
from teho.source.changes import stored_or_named
from teho.source.cuts import find_cut
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.result_uses import ResultUses, Search
from teho.source.stack import TIMES, Level, levels_of
from teho.source.uses import Uses

__all__ = ["Needs"]

_WAITS = frozenset(
    ("item", "cpu", "numpy", "tolist", "to", "cuda", "float", "int", "bool", "asarray", "array")
)
"""Functions and methods that may wait for a device: the time is that of earlier calls."""


class Needs:
    """Finds results that are used seldom or never.

    Args:
        purity: the program.
    """

    def __init__(self, purity: Purity) -> None:
        self._purity, self._program = purity, purity.program
        self._uses: dict[int, Uses] = {}
        self._found: dict[int, Unneeded | None] = {}
        """By the id of an expression; the program keeps its expressions."""
        self._cuts: dict[int, Unneeded | None] = {}

    def find(self, frames: Sequence[Frame]) -> list[Unneeded]:
        """Return the outermost expression on a stack whose result is used seldom or never.

        If there is none: the innermost expression, if only a part of its result is used.

        Args:
            frames: the stack, innermost frame first.
        """
        levels = levels_of(frames, self._program)
        if any(level.is_measured for level in levels):
            return []
        for number, level in enumerate(levels):
            one = self._of(level) or (self._cut(level) if level is levels[-1] else None)
            if one is not None:
                calls = tuple(each.frame for each in levels[: number + 1])
                return [msgspec.structs.replace(one, calls=calls)]
        return []

    def uses_of(self, function: Function) -> Uses:
        """Return the uses in a function; each function is read once."""
        key = id(function.node)
        if key not in self._uses:
            self._uses[key] = Uses(function)
        return self._uses[key]

    def _of(self, level: Level) -> Unneeded | None:
        if level.node is None or level.gets_next or _may_wait(level.node):
            return None
        key = id(level.node)
        if key not in self._found:
            search = Search(level.place, self._purity, self.uses_of(level.function))
            found = search.of(level.node)
            self._found[key] = self._described(found, level) if found else None
        return self._found[key]

    def _cut(self, level: Level) -> Unneeded | None:
        key = id(level.node)
        if key not in self._cuts:
            self._cuts[key] = find_cut(level, self.uses_of(level.function), self._program)
        return self._cuts[key]

    def _described(self, found: ResultUses, level: Level) -> Unneeded | None:
        """Return what is reported; None if the advice would not be certain to fit."""
        one = Unneeded(
            calls=(level.frame,),
            need=Need.NEVER,
            moved=tuple(sorted(each.lineno for each in found.chain)),
            loop=_loop(found, level),
            last=getattr(found.loop or level.function.node, "end_lineno", 0) or 0,
        )
        if not found.branches and level.function.name.startswith("test"):
            return None  # a test of whether it fails
        if not found.branches and not found.after:
            return one if self._is_sure_of_never(found, level) else None
        if found.after and not self._is_settled(found, level.place):
            return None
        at = tuple(_frame(level, each) for each in found.after[:1])
        if not found.branches:
            return msgspec.structs.replace(one, need=Need.LAST, at=at)
        can_move = self._can_move(found, level.place)
        if can_move is None:
            return None
        branches = sorted(found.branches.values(), key=lambda each: each.node.lineno)
        if len(branches) > 1 and any(each.is_skipped for each in branches):
            return None  # the conditions cannot be joined
        return msgspec.structs.replace(
            one,
            need=Need.SELDOM,
            at=tuple(_frame(level, each.node, each.node.test) for each in branches),
            after=at,
            share=found.share,
            is_sure=all(each.rare.is_sure for each in branches),
            is_skipped=branches[0].is_skipped,
            can_move=can_move,
            condition=_frame(level, found.condition, found.condition.test)
            if found.condition
            else None,
        )

    @staticmethod
    def _is_sure_of_never(found: ResultUses, level: Level) -> bool:
        """Return whether a result without a use has no other purpose, such as a measurement."""
        if isinstance(level.function.node, ast.Module) and found.loop is None:
            return False  # another file may use it
        targets = [root_name(one) for each in found.chain for one in stored_or_named(each)]
        if targets and all(name.startswith("_") for name in targets):
            return False
        return not any(TIMES.search(line.decode("utf-8", "replace")) for line in level.file.lines)

    def _is_settled(self, found: ResultUses, at: Place) -> bool:
        """Return whether the statements would give the same results after the loop."""
        body = getattr(found.loop, "body", [])
        first = found.chain[0].lineno
        if any(one not in body for one in found.chain):
            return False
        inside = [inner for one in body for inner in ast.walk(one)]
        # In its last iteration, the loop may not come to these statements.
        if any(isinstance(one, (ast.Break, ast.Continue)) and _line(one) < first for one in inside):
            return False
        moved = _nodes_of(found)
        later = tuple(one for one in inside if _line(one) > first and id(one) not in moved)
        return not any(self._changes(one, later, found, at) for one in found.chain)

    def _can_move(self, found: ResultUses, at: Place) -> bool | None:
        """Return whether the statements can be moved into the rare branch.

        None: they can also not be executed under the same condition where they are.
        """
        can_move = len(found.branches) == 1 and not found.after
        is_same = True
        around = found.loop or at.function.node
        moved = _nodes_of(found)
        for branch in found.branches.values():
            end = branch.node.lineno
            for one in found.chain:
                between = tuple(
                    inner
                    for inner in ast.walk(around)
                    if one.lineno < _line(inner) < end and id(inner) not in moved
                )
                can_move = can_move and not self._changes(one, between, found, at)
                is_same = is_same and not self._changes(branch.node.test, between, found, at)
        return can_move if can_move or is_same else None

    def _changes(
        self, read: ast.AST, nodes: tuple[ast.AST, ...], found: ResultUses, at: Place
    ) -> bool:
        """Return whether some code may change what a statement or condition reads."""
        moved = {root_name(one) for each in found.chain for one in stored_or_named(each)}
        calls = tuple(one for one in nodes if isinstance(one, ast.Call))
        set_here = {dotted_name(one) for node in nodes for one in stored_or_named(node)}
        value = read.value if isinstance(read, (ast.Assign, ast.AnnAssign)) else read
        for names in _inputs(value) if value is not None else ():
            root = names[0]
            if root in moved:
                continue
            if set_here & set(names) or self._purity.changes.is_changed_in(root, calls, at):
                return True
            own = names[1:] or names
            if any(self._purity.changes.is_changed_in(name, nodes, at) for name in own):
                return True
            if any(self._is_unknown_with(root, call, at) for call in calls):
                return True
        return False

    def _is_unknown_with(self, name: str, call: ast.Call, at: Place) -> bool:
        """Return whether an unknown function gets an object."""
        is_unknown = self._program.called(call, at) is None and isinstance(call.func, ast.Name)
        return is_unknown and name in {root_name(one) for one in call.args}


def _nodes_of(found: ResultUses) -> set[int]:
    """Return the ids of the nodes of the statements that are moved together."""
    return {id(inner) for one in found.chain for inner in ast.walk(one)}


def _may_wait(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    target = node.func
    return (target.attr if isinstance(target, ast.Attribute) else root_name(target)) in _WAITS


def _inputs(value: ast.AST) -> Iterator[list[str]]:
    """Yield the names that an expression reads: `self`, `self.grid`, `self.grid.mean`."""
    nodes = list(ast.walk(value))
    within = {one.value for one in nodes if isinstance(one, ast.Attribute)}
    for one in nodes:
        if isinstance(one, (ast.Name, ast.Attribute)) and one not in within:
            parts = dotted_name(one).split(".")
            yield [".".join(parts[: end + 1]) for end in range(len(parts))]


def _loop(found: ResultUses, level: Level) -> Frame:
    around = found.loop or level.function.node
    line = getattr(around, "lineno", 1)
    return _frame(level, around, None, line)


def _frame(
    level: Level, node: ast.AST, text: ast.expr | None = None, line: int | None = None
) -> Frame:
    """Return a statement as a frame of the recording, with the text of a part of it."""
    line = line or _line(node)
    words = level.file.text_of(text) if text else level.file.line_text(line).rstrip(":")
    return Frame(level.frame.file, level.frame.function, line, words)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0) or 0)
