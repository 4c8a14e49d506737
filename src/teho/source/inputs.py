"""How the inputs of a call differ between the iterations of a loop."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Sequence
from typing import Union

from teho.source.items import Items, part_of
from teho.source.known import known, may_be_trained
from teho.source.library_calls import fixed_parameters
from teho.source.outside import changes_outside, is_loader, reads_files
from teho.source.parsed import Assigned, Loop, root_name
from teho.source.program import Place, is_imported
from teho.source.purity import SET_UP, Purity
from teho.source.reaching import reaching
from teho.source.stack import Level

__all__ = ["Inputs", "Value"]

_PERMUTATIONS = frozenset(("permutation", "randperm"))


class Value(enum.IntEnum):
    """How a value differs between the iterations of a loop."""

    SAME = 0
    REPEATS = 1
    """An inner loop goes through the same values in each iteration."""
    SHUFFLED = 2
    """A collection of the same values in another order."""
    VARIES = 3
    """It differs, or this is not known."""


class Inputs:
    """Where the inputs of a call come from, for one loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        at: the level that has the loop.
        loop: the loop.
        purity: the program.
        knows_items: whether the items of the loop count as the same, because all of them are known
            before the loop.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        at: int,
        loop: Loop,
        purity: Purity,
        *,
        knows_items: bool = False,
    ) -> None:
        self._levels, self._at, self._loop, self._knows_items = levels, at, loop, knows_items
        self._purity, self._program, self._changes = purity, purity.program, purity.changes
        self._items = Items(levels, purity, self._argument)
        self._open: set[tuple[Union[int, str], ...]] = set()
        """Names that are being examined: one that depends on itself varies."""
        self._identities = 0
        """Above 0, only which object an expression is counts, and not whether it is changed."""
        self._bound: list[str] = []
        """Names that a comprehension binds."""
        self._is_function = loop.node is levels[at].function.node
        """Whether the loop is around the calls of its function."""
        node = loop.node
        self._loop_nodes: Sequence[ast.AST] = [node]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._loop_nodes = node.body
        self._body = self._program.all_nodes(loop.node, self._loop_nodes)

    def of_call(self, number: int) -> Value:
        """Return how the inputs of a level's expression differ between iterations."""
        node = self._levels[number].node
        if node is None:
            return Value.VARIES
        if not isinstance(node, ast.Call):
            return self._of(number, node)
        value = self._of_arguments(number, node)
        if value is Value.REPEATS and is_loader(
            self._levels[-1].node, self._levels[-1].place, self._program
        ):
            return Value.VARIES  # a training that reads its data in each epoch
        place = self._levels[number].place
        if reads_files(node, place, self._program) and changes_outside(
            self._loop_nodes, self._levels[self._at].place, self._program
        ):
            return Value.VARIES
        return value

    def is_of_known_items(self, number: int, iterable: ast.expr) -> bool:
        """Return whether a loop goes through a collection whose items are all known before it."""
        return self._items.is_collection(number, iterable)

    def _of_arguments(self, number: int, call: ast.Call) -> Value:
        values = [self._of(number, one) for one in (*call.args, *call.keywords)]
        if isinstance(call.func, ast.Attribute):
            # A pure method of the program reads only attributes that do not change.
            is_own = isinstance(self._program.called(call, self._levels[number].place), Place)
            of_object = self._which if is_own else self._of_receiver
            if call.func.attr in known().methods.pure:
                of_object = self._of
            values.append(of_object(number, call.func.value))
        else:
            values.append(self._of(number, call.func))
        return _together(values)

    def _of_receiver(self, number: int, node: ast.expr) -> Value:
        """Return it for the object of a method; a new object may be changed by the method."""
        if isinstance(node, ast.Name):
            function = self._levels[number].function
            given = function.assigned.get(node.id, [])
            if self._is_used_again(number, node, given):
                return Value.VARIES
            is_inside = number > self._at or self._is_function or all(map(self._is_in_loop, given))
            if len(given) == 1 and is_inside and isinstance(given[0].value, ast.Call):
                return self._of_assigned(number, given[0])
        return self._of(number, node)

    def _is_used_again(self, number: int, node: ast.Name, given: Sequence[Assigned]) -> bool:
        """Return whether a loop calls methods of one object, such as a file, several times."""
        level = self._levels[number]
        inner = level.function.loops_at(node.lineno)
        if not inner or not self._purity.is_new(node.id, level.function):
            return False
        return not any(inner[-1].first <= one.line <= inner[-1].last for one in given)

    def _which(self, number: int, node: ast.expr) -> Value:
        """Return whether an expression is the same object; it may be changed in the loop."""
        self._identities += 1
        try:
            return self._of(number, node)
        finally:
            self._identities -= 1

    def _of(self, number: int, node: ast.AST) -> Value:
        match node:
            case ast.Constant():
                return Value.SAME
            case ast.Name():
                return self._of_name(number, node.id, node)
            case ast.Attribute():
                return self._of_attribute(number, node)
            case ast.Call() if self._is_permutation(number, node):
                return Value.SHUFFLED
            case ast.Subscript():
                return self._of_subscript(number, node)
            case ast.Call():
                if not self._purity.is_pure(node, self._levels[number].place):
                    return Value.VARIES
                return self._of_arguments(number, node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._of_comprehension(number, node)
            case ast.Lambda() | ast.Yield() | ast.YieldFrom() | ast.Await():
                return Value.VARIES
        return self._of_parts(number, node)

    def _of_parts(self, number: int, node: ast.AST) -> Value:
        values = [
            self._of(number, part)
            for part in ast.iter_child_nodes(node)
            if isinstance(part, (ast.expr, ast.keyword))
        ]
        return _together(values)

    def _is_permutation(self, number: int, call: ast.Call) -> bool:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
        if name not in _PERMUTATIONS or not call.args:
            return False
        return all(self._of(number, one) is Value.SAME for one in call.args)

    def _of_subscript(self, number: int, node: ast.Subscript) -> Value:
        whole, part = self._of(number, node.value), self._of(number, node.slice)
        if whole is Value.SHUFFLED and part <= Value.REPEATS:
            # A part of the order is another one each time; all items are the same.
            return whole if isinstance(node.slice, ast.Slice) else Value.REPEATS
        return _together((whole, part))

    def _of_comprehension(
        self, number: int, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> Value:
        names = [
            one.id
            for inner in node.generators
            for one in ast.walk(inner.target)
            if isinstance(one, ast.Name)
        ]
        self._bound += names
        parts = [part for inner in node.generators for part in (inner.iter, *inner.ifs)]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        value = _together(self._of(number, part) for part in parts)
        del self._bound[len(self._bound) - len(names) :]
        return value

    def _of_attribute(self, number: int, node: ast.Attribute) -> Value:
        level = self._levels[number]
        root = root_name(node)
        if root and (is_imported(root, level.function) or root in level.function.module.classes):
            return Value.SAME
        names = known().names
        if node.attr in names.attributes or root in names.settings:
            return self._of(number, node.value)
        if self._purity.is_constant_attribute(node.attr, level.place):
            return self._which(number, node.value)
        return Value.VARIES

    def _of_name(self, number: int, name: str, node: ast.Name | None = None) -> Value:
        if name in self._bound:
            return Value.SAME
        reached, is_given = reaching(self._levels[number].function, name, node)
        key: tuple[Union[int, str], ...] = (number, name, *(one.line for one in reached))
        if key in self._open:
            return Value.VARIES
        self._open.add(key)
        try:
            return self._of_new_name(number, name, reached, is_given=is_given)
        finally:
            self._open.discard(key)

    def _of_new_name(
        self, number: int, name: str, reached: Sequence[Assigned], *, is_given: bool
    ) -> Value:
        level = self._levels[number]
        function = level.function
        given = function.assigned.get(name, [])
        if not function.binds(name):
            return self._of_outer_name(number, name)
        if name == "self" and function.owner is not None:
            return self._of_parameter(number, name) if number > self._at else Value.SAME
        if number < self._at:
            return self._before(number, name)
        if number == self._at and not self._is_function:
            return self._of_own_name(number, name, given)
        nodes = function.nodes
        changed = self._if_changed(number, name, nodes)
        values = [self._of_assigned(number, one) for one in reached]
        if is_given:
            values.append(self._of_parameter(number, name))
        return max(*values, changed)

    def _of_own_name(self, number: int, name: str, given: Sequence[Assigned]) -> Value:
        """Return it for a name of the function that has the loop."""
        if any(one.loop is self._loop for one in given):
            others = (one for one in given if one.loop is not self._loop)
            is_known = self._knows_items and not any(map(self._is_in_loop, others))
            return self._if_changed(number, name, self._body) if is_known else Value.VARIES
        changed = self._if_changed(number, name, self._body)
        inside = [one for one in given if self._is_in_loop(one)]
        if not inside:
            return max(self._before(number, name), changed)
        return max(*(self._of_assigned(number, one) for one in inside), changed)

    def _has_position(self, number: int, name: str) -> bool:
        """Return whether a name has a file or an iterator from before the loop."""
        if number > self._at or (number == self._at and self._is_function):
            return False  # made again in each iteration, or examined at its source
        level = self._levels[number]
        values = [
            one.value
            for one in level.function.assigned.get(name, [])
            if one.loop is None and not (number == self._at and self._is_in_loop(one))
        ]
        if any(self._program.makes_position(value, level.place) for value in values):
            return True
        argument = self._argument(number, name) if name in level.function.params else None
        if isinstance(argument, ast.Name):
            return self._has_position(number - 1, argument.id)
        return argument is not None and self._program.makes_position(
            argument, self._levels[number - 1].place
        )

    def _if_changed(self, number: int, name: str, nodes: tuple[ast.AST, ...]) -> Value:
        """Return how much some code may change the object of a name."""
        place = self._levels[number].place
        if self._identities:
            return Value.SAME
        every = place.function.nodes
        names = {name, *self._changes.other_names(name, every, place)}
        has_position = self._has_position(number, name)
        if not any(
            self._changes.is_changed_in(one, nodes, place, has_position=has_position)
            for one in names
        ):
            return Value.SAME
        if has_position:
            return Value.VARIES
        others = tuple(node for node in nodes if not _shuffles(node, name))
        if len(others) == len(nodes):
            return Value.VARIES
        is_only_shuffled = not any(self._changes.is_changed_in(one, others, place) for one in names)
        return Value.SHUFFLED if is_only_shuffled else Value.VARIES

    def _is_in_loop(self, one: Assigned) -> bool:
        return self._loop.first <= one.line <= self._loop.last

    def _of_assigned(self, number: int, one: Assigned) -> Value:
        if one.value is None:
            return Value.VARIES
        value = self._of(number, one.value)
        if one.loop is None:
            return value
        if value is Value.VARIES and not self._is_part_of_same(number, one):
            return value
        if value is Value.SHUFFLED:
            return Value.REPEATS
        is_finite = self._items.is_collection(number, one.value)
        return Value.REPEATS if is_finite else Value.VARIES

    def _is_part_of_same(self, number: int, one: Assigned) -> bool:
        """Return whether an inner loop goes through the begin or the end of the same values.

        After `for i in range(n)`, `for j in range(i + 1, n)` goes through most values again in the
        next iteration.
        """
        part, node = part_of(one), self._loop.node
        if part is None or number != self._at or not isinstance(node, ast.For):
            return False
        is_of_loop = _names_in(part.bound) and _names_in(part.bound) <= _names_in(node.target)
        return bool(is_of_loop) and self._of(number, part.whole) is Value.SAME

    def _before(self, number: int, name: str) -> Value:
        """Return it for a name that got its value before the loop: an optimizer may change it."""
        function = self._levels[number].function
        values = [one.value for one in function.assigned.get(name, []) if one.value is not None]
        if any(map(may_be_trained, values)) or any(
            self._makes_trained(number, one) for one in values
        ):
            return Value.VARIES
        argument = self._argument(number, name) if name in function.params else None
        if argument is not None and may_be_trained(argument):
            return Value.VARIES
        if argument is not None:
            values.append(argument)
        place = self._levels[self._at].place
        if (
            number == self._at
            and not self._identities
            and any(
                self._changes.is_changed_in(other, self._body, place)
                for value in values
                for other in _names_in(value)
                if other != name and self._changes.shares(value, other, place)
            )
        ):
            return Value.VARIES
        if isinstance(argument, ast.Name) and number:
            return self._before(number - 1, argument.id)
        return Value.SAME

    def _makes_trained(self, number: int, value: ast.expr) -> bool:
        """Return whether a function of the program that gives a value makes parameters."""
        place = self._levels[number].place
        called = self._program.called(value, place) if isinstance(value, ast.Call) else None
        return isinstance(called, Place) and any(
            isinstance(one, (ast.Name, ast.Attribute, ast.keyword)) and _is_trained(one)
            for one in called.function.nodes
        )

    def _of_outer_name(self, number: int, name: str) -> Value:
        """Return it for a name of a function around, of the file, or of Python."""
        function = self._levels[number].function
        outer = function.parent
        while outer is not None and not outer.knows(name):
            outer = outer.parent
        for other in range(number - 1, self._at - 1, -1):
            if outer is not None and self._levels[other].function is outer:
                return self._of_name(other, name)
        is_constant = self._purity.is_constant_name(name, self._levels[number].place)
        return Value.SAME if is_constant else Value.VARIES

    def _of_parameter(self, number: int, name: str) -> Value:
        level = self._levels[number]
        if level.is_forward and number > self._at and name != "self":
            argument = self._argument(number, name)
            is_same = argument is not None and self._of(number - 1, argument) is Value.SAME
            return Value.SAME if is_same else Value.VARIES
        if level.caller or not number:
            is_item = self._knows_items and self._is_function and number == self._at
            if name == "self" or is_item:
                return Value.SAME
            before = self._levels[number - 1] if number else None
            if before and name in fixed_parameters(level, before, self._program):
                return Value.SAME
            # In each pass over a data loader, a data set is asked for the same indices.
            is_item = level.function.name == "__getitem__" and number > self._at
            return Value.REPEATS if is_item and not self._is_of_loader() else Value.VARIES
        if name == "self":
            return self._of_own_self(number)
        argument = self._argument(number, name)
        if argument is not None:
            return self._of(number - 1, argument)
        default = level.function.default(name)
        is_left_out = isinstance(default, ast.Constant) and self._calls(number)
        return Value.SAME if is_left_out else Value.VARIES

    def _is_of_loader(self) -> bool:
        return self._loop.line == self._levels[self._at].frame.line

    def _of_own_self(self, number: int) -> Value:
        call = self._levels[number - 1].node
        if isinstance(call, ast.Attribute):  # a property
            return self._of(number - 1, call.value)
        if not isinstance(call, ast.Call):
            return Value.VARIES
        if self._levels[number].function.name in SET_UP:
            return Value.SAME  # the object is new
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        return self._which(number - 1, receiver)

    def _calls(self, number: int) -> bool:
        """Return whether a level is called by the level before, with plain arguments.

        In `sorted(items, key=score)`, Python calls `score` with other arguments.
        """
        before, function = self._levels[number - 1], self._levels[number].function
        call = before.node
        if not isinstance(call, ast.Call) or isinstance(function.node, ast.Lambda):
            return False
        called = self._program.called(call, before.place)
        is_other = isinstance(called, Place) and called.function.name != function.name
        if is_other or isinstance(called, str):
            return False
        has_stars = any(isinstance(one, ast.Starred) for one in call.args)
        return not has_stars and all(word.arg for word in call.keywords)

    def _argument(self, number: int, name: str) -> ast.expr | None:
        """Return the expression that a caller gives for a parameter; None if it is not clear."""
        level = self._levels[number]
        if not number or (level.caller and not level.is_forward):
            return None
        function, call = self._levels[number].function, self._levels[number - 1].node
        if not isinstance(call, ast.Call) or not self._calls(number):
            return None
        for word in call.keywords:
            if word.arg == name:
                return word.value
        given = dict(zip(function.params_of_call, call.args, strict=False))
        return given.get(name)


def _together(values: Iterable[Value]) -> Value:
    """Return how a value differs that is made of several others."""
    value = max(values, default=Value.SAME)
    return Value.VARIES if value is Value.SHUFFLED else value


def _shuffles(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or [root_name(one) for one in node.args] != [name]:
        return False
    function = node.func
    return isinstance(function, ast.Attribute) and function.attr == "shuffle"


def _is_trained(node: ast.Name | ast.Attribute | ast.keyword) -> bool:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
    name = node.arg if isinstance(node, ast.keyword) else name
    return name in ("Parameter", "requires_grad", "requires_grad_")


def _names_in(value: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
