"""Follows a lazy table to the call that makes its plan."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.stack import Frame
from teho.source.changes import named_values
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Assigned, Function, Loop, root_name
from teho.source.plans.libraries import Library, libraries, library_of_call
from teho.source.program import Place
from teho.source.purity import SET_UP, Purity
from teho.source.stack import Level, argument

__all__ = ["Begin", "Follower", "Scope", "Step"]

_DEEPEST = 6
"""Functions that return a plan to each other."""


class Scope(NamedTuple):
    """A function in which a plan is followed."""

    place: Place
    number: int
    """Its level on the stack; for a function that has returned, the level that called it."""
    call: Union[ast.Call, None] = None
    """The call of a function that has returned."""
    outer: Union[Scope, None] = None
    """The function that has this call."""


class Begin(NamedTuple):
    """The call that makes a plan."""

    library: Library
    function: str
    """Its dotted name, or the end of its chain of methods."""
    line: Frame


class Step(NamedTuple):
    """A step of a plan."""

    name: str
    node: ast.expr
    is_inside: bool
    """Whether it is in the loop."""

    @property
    def parts(self) -> list[ast.AST]:
        """Its arguments, or what is in its brackets."""
        if isinstance(self.node, ast.Call):
            return [*self.node.args, *self.node.keywords]
        return [self.node.slice] if isinstance(self.node, ast.Subscript) else []

    @property
    def text(self) -> str:
        """Its text, such as `filter(pl.col('a') == 1)`."""
        return f"{self.name}({', '.join(map(ast.unparse, self.parts))})"

    @property
    def columns(self) -> set[str]:
        """Texts and names in it that may be columns by which it selects: `"a"`, `a=1`, `table.a`.

        Before the loop, `a=…` is a new column.
        """
        inner = [one for part in self.parts for one in ast.walk(part)]
        methods = {id(one.func) for one in inner if isinstance(one, ast.Call)}
        found: set[str] = set()
        for one in inner:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                found.add(one.value)
            elif isinstance(one, ast.keyword) and one.arg and self.is_inside:
                found.add(one.arg)
            elif isinstance(one, ast.Attribute) and id(one) not in methods:
                found.add(one.attr)
        return found


class Follower:
    """Follows a plan to the call that makes it, for one loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        at: the level that has the loop.
        loop: the loop.
        purity: the program.
    """

    def __init__(self, levels: Sequence[Level], at: int, loop: Loop, purity: Purity) -> None:
        self._levels, self._at, self._loop, self._purity = levels, at, loop, purity
        self._open: set[tuple[int, str, int]] = set()
        """Function, name and line of the names that are being followed."""
        self.steps: list[Step] = []
        self.kept: tuple[str, Frame | None] | None = None
        """The name that has the plan outside of the loop, and the line that gives it the plan.
        None: all of the plan is in the loop."""
        self.inside: tuple[int, ast.expr] | None = None
        """The level and the expression in the loop that makes the plan."""

    def follow(self, node: ast.expr, scope: Scope, before: int, *, is_inside: bool) -> Begin | None:
        """Return the call that makes a plan; None if this is not clear.

        Args:
            node: an expression that has the plan.
            scope: the function that it is in.
            before: assignments after this line do not count.
            is_inside: whether it is in the loop.
        """
        match node:
            case ast.Name():
                return self._follow_name(node.id, scope, before, is_inside=is_inside)
            case ast.Call():
                return self._follow_call(node, scope, before, is_inside=is_inside)
            case ast.Attribute(value=ast.Name(id="self")):
                return self._follow_attribute(node, scope, is_inside=is_inside)
            case ast.Attribute() | ast.Subscript():
                name = node.attr if isinstance(node, ast.Attribute) else "[]"
                self.steps.append(Step(name, node, is_inside))
                return self.follow(node.value, scope, before, is_inside=is_inside)
            case ast.BinOp() | ast.Compare():
                return self.follow(node.left, scope, before, is_inside=is_inside)
        return None

    def _follow_call(
        self, call: ast.Call, scope: Scope, before: int, *, is_inside: bool
    ) -> Begin | None:
        called = self._purity.program.called(call, scope.place)
        if is_inside and not scope.call:
            self.inside = scope.number, call
        imports = scope.place.function.module.imports.values()
        packages = frozenset(one.partition(".")[0] for one in imports)
        if (begin := library_of_call(call, called, packages)) is not None:
            return Begin(*begin, self._frame(scope.place, call.lineno))
        if isinstance(called, Place):
            returned = [
                one.value
                for one in called.function.nodes
                if isinstance(one, ast.Return) and one.value is not None
            ]
            is_plain = called.function is not scope.place.function and len(returned) == 1
            inner = Scope(called, scope.number, call, scope)
            depth = sum(1 for _ in _outward(inner))
            if not is_plain or depth > _DEEPEST:
                return None
            return self.follow(returned[0], inner, returned[0].lineno, is_inside=is_inside)
        if isinstance(called, str) and "." in called:
            parts = call.args[0] if call.args and called.endswith(".concat") else None
            if isinstance(parts, (ast.List, ast.Tuple)) and parts.elts:
                return self.follow(parts.elts[0], scope, before, is_inside=is_inside)
            if isinstance(parts, ast.ListComp):
                return self.follow(parts.elt, scope, before, is_inside=is_inside)
            return None
        if not isinstance(call.func, ast.Attribute):
            return None
        self.steps.append(Step(call.func.attr, call, is_inside))
        return self.follow(call.func.value, scope, before, is_inside=is_inside)

    def _follow_name(
        self, name: str, scope: Scope, before: int, *, is_inside: bool
    ) -> Begin | None:
        owner, before = self._owner_of(name, scope, before)
        if owner is None:
            return None
        function = owner.place.function
        if _is_kept(name, function):
            return None
        given = function.assigned.get(name, [])
        is_of_loop = is_inside and not owner.call and owner.number <= self._at
        if is_of_loop and (within := [one for one in given if self._is_in_loop(one, owner)]):
            value = within[0].value
            is_plain = len(within) == 1 and within[0].loop is None
            if value is None or not is_plain:
                return None
            return self._follow_open(name, value, owner, within[0].line, is_inside=True)
        earlier = sorted((one for one in given if one.line < before), key=lambda one: one.line)
        line = self._frame(owner.place, earlier[-1].line) if earlier else None
        if is_of_loop:
            self.kept = name, line
            is_inside = False
        if not earlier:
            return self._follow_parameter(name, owner, is_inside=is_inside)
        last = earlier[-1]
        is_chain = all(one.value and _root(one.value) == name for one in earlier[1:])
        if last.value is None or last.loop is not None or not is_chain:
            return None
        return self._follow_open(name, last.value, owner, last.line, is_inside=is_inside)

    def _follow_open(
        self, name: str, value: ast.expr, owner: Scope, line: int, *, is_inside: bool
    ) -> Begin | None:
        """Follow the value that a line gives a name; a name in a loop may depend on itself."""
        key = id(owner.place.function), name, line
        if key in self._open:
            return None
        self._open.add(key)
        try:
            return self.follow(value, owner, line, is_inside=is_inside)
        finally:
            self._open.discard(key)

    def _owner_of(self, name: str, scope: Scope, before: int) -> tuple[Scope | None, int]:
        """Return the function in which a name is known, and the line up to which it counts."""
        function: Function | None = scope.place.function
        while function is not None and not function.knows(name):
            function = function.parent
        if function is None or function is scope.place.function:
            return (scope if function is not None else None), before
        place = Place(scope.place.path, function)
        for number in range(scope.number, -1, -1):
            if self._levels[number].function is function:
                return Scope(place, number), self._levels[number].frame.line
        return Scope(place, -1), (getattr(function.node, "end_lineno", None) or 1 << 30)

    def _follow_parameter(self, name: str, scope: Scope, *, is_inside: bool) -> Begin | None:
        function = scope.place.function
        if name not in function.params:
            return None
        if scope.call is not None and scope.outer is not None:
            given = dict(zip(function.params_of_call, scope.call.args, strict=False))
            given |= {word.arg: word.value for word in scope.call.keywords if word.arg}
            value, outer, line = given.get(name), scope.outer, scope.call.lineno
        else:
            number = scope.number - 1
            value, line = argument(self._levels, scope.number, name), 0
            if value is None:
                return None
            outer, line = (
                Scope(self._levels[number].place, number),
                self._levels[number].frame.line,
            )
        return self.follow(value, outer, line, is_inside=is_inside) if value is not None else None

    def _follow_attribute(
        self, node: ast.Attribute, scope: Scope, *, is_inside: bool
    ) -> Begin | None:
        """Follow `self.plan`, which the object gets once, when it is made."""
        place = scope.place
        if is_inside and (scope.call or self.value_of(scope.number, node.value) is not Value.SAME):
            return None  # another object
        given = [
            (value, function)
            for function in place.function.module.every()
            for one in function.nodes
            for target, value in named_values(one)
            if isinstance(target, ast.Attribute) and target.attr == node.attr
        ]
        if len(given) != 1:
            return None
        ((value, function),) = given
        if function.name not in SET_UP or function.owner is not place.function.owner:
            return None
        made = Place(place.path, function)
        if is_inside:
            self.kept = f"self.{node.attr}", self._frame(made, value.lineno)
        return self._follow_open(
            f"self.{node.attr}", value, Scope(made, -1), value.lineno, is_inside=False
        )

    def _is_in_loop(self, one: Assigned, scope: Scope) -> bool:
        is_here = scope.number == self._at
        return is_here and self._loop.first <= one.line <= self._loop.last

    def value_of(self, number: int, node: ast.expr) -> Value:
        """Return how an expression of a level differs between the iterations of the loop."""
        levels = list(self._levels)
        levels[number] = levels[number]._replace(node=node)
        return Inputs(levels, self._at, self._loop, self._purity).of_call(number)

    def _frame(self, place: Place, line: int) -> Frame:
        file = self._purity.program.file(place.path)
        text = file.line_text(line) if file is not None else ""
        return Frame(place.path, place.function.name or "<module>", line, text)


def _is_kept(name: str, function: Function) -> bool:
    """Return whether a method keeps the rows of a table in the same object: `table.cache()`."""
    keeps = frozenset[str]().union(*(one.keeps for one in libraries().values()))
    return any(
        isinstance(node, ast.Attribute) and node.attr in keeps and root_name(node) == name
        for node in function.nodes
    )


def _root(node: ast.expr | None) -> str:
    """Return the name at the begin of `name.part[0].call()`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _outward(scope: Scope) -> Iterator[Scope]:
    """Yield a function, and the functions that called it and have returned."""
    outer: Scope | None = scope
    while outer is not None:
        yield outer
        outer = outer.outer
