"""Finds work that a loop does again in each iteration, with the same inputs.

The stack says which lines took the time: the call of each function, from the loop down. The source
says where the inputs of these calls come from. If none of them changes in the loop, and the called
functions change nothing, the result is the same in each iteration. If Teho cannot be sure, it
reports nothing.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from teho.model.watched import Frame, Repeated, is_library
from teho.source.parsed import COMPREHENSIONS, Assigned, Function, Loop, SourceFile, root_name
from teho.source.purity import (
    SET_UP,
    Place,
    Sources,
    is_cached,
    is_imported,
    known,
    may_be_trained,
)

__all__ = ["find_repeated"]

_NEXT = re.compile(r"(^|\.)(__next__|_next_data|_next_index)$")
"""Functions of libraries that get the next item of a loop."""
_CALLS_AGAIN = re.compile(
    r"/torch/utils/data/|/torch/nn/modules/module\.py|/datasets/\w+\.py|/tensorflow/python/"
    r"|/grain/|/scipy/(optimize|integrate)/|/pandas/core/|/multiprocessing/pool\.py"
    r"|/concurrent/futures/process\.py|/joblib/|/loky/|/lightning|/transformers/|/keras/"
)
"""Libraries that call a function of the program again and again, such as for each sample."""
_FIRST_VARY = (("/scipy/optimize/", 1), ("/scipy/integrate/", 2))
"""Libraries that call a function of the program with the same further arguments each time, and the
number of those that vary."""
_INNER = re.compile(r"<(list|set|dict)comp>$|<genexpr>$|<lambda>$")
_TIMES = re.compile(r"\b(perf_counter|timeit|monotonic|process_time|time\.time|default_timer)\b")
_BESIDE = 2
"""Lines before and after a call in which its time is taken."""
_MAY_BE_STREAM = re.compile("load|stream|iter|queue|gen|reader|batch|source|feed|env")
"""Names of objects that may give other items each time."""
_PERMUTATIONS = frozenset(("permutation", "randperm"))
_COLLECTIONS = frozenset(
    ("range", "sorted", "list", "tuple", "set", "frozenset", "dict", "enumerate", "zip", "reversed")
)
_ITERATORS = frozenset(("enumerate", "zip", "range", "reversed", "map", "filter", "iter"))
"""Functions that compute nothing before their items are used."""
_OF_COLLECTIONS = frozenset(
    (
        *("items", "keys", "values", "iterrows", "itertuples", "groupby", "unique", "tolist"),
        *("split", "splitlines", "namelist", "infolist", "index", "columns", "argv"),
    )
)


class _Value(enum.IntEnum):
    """How a value differs between the iterations of a loop."""

    SAME = 0
    REPEATS = 1
    """An inner loop goes through the same values in each iteration."""
    SHUFFLED = 2
    """A collection of the same values in another order."""
    VARIES = 3
    """It differs, or this is not known."""


class _Level(NamedTuple):
    """A function of the program on a stack."""

    frame: Frame
    place: Place
    file: SourceFile
    node: ast.expr | None
    """What it executes."""
    caller: str
    """File of the library that called the function; empty if the level before called it."""
    gets_next: bool
    """Whether it waits for the next item of the loop whose first line it executes."""

    @property
    def function(self) -> Function:
        return self.place.function

    @property
    def is_called_again(self) -> bool:
        """Whether a library calls the function again and again."""
        return _CALLS_AGAIN.search(self.caller) is not None

    def as_loop(self) -> Loop:
        """Return a loop around the calls of the function."""
        node = self.function.node
        last = getattr(node, "end_lineno", 0) or 0
        return Loop(node, getattr(node, "lineno", 0), 0, last, None)

    def loops(self) -> list[Loop]:
        """Return the loops that it is in, the outermost first."""
        line = self.frame.line
        found = [loop for loop in self.function.loops_at(line) if self._is_inside(loop)]
        if self.gets_next:
            found += [one for one in self.function.loops if one.line == line and one.is_statement]
        return found

    def _is_inside(self, loop: Loop) -> bool:
        if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While)):
            # A loop that ends in its first iteration is none.
            return not isinstance(loop.node.body[-1], (ast.Break, ast.Return, ast.Raise))
        whole = loop.node
        if self.node is None or not isinstance(whole, COMPREHENSIONS):
            return False
        first = set(ast.walk(whole.generators[0].iter))
        return self.node not in first and self.node in ast.walk(whole)


def find_repeated(frames: Sequence[Frame], sources: Sources) -> list[Repeated]:
    """Return the calls on a stack that give the same results again in each iteration of a loop.

    At most two: the call with the same result in each iteration, and the call that goes through
    the same values again; of several, the outermost one, and of its loops the outermost one.

    Args:
        frames: the stack, innermost frame first.
        sources: the files of the program.
    """
    levels = _levels(frames, sources)
    found: dict[_Value, Repeated] = {}
    for number, level in enumerate(levels):
        if _is_measured(level):
            break
        if not _may_be_repeated(level, sources):
            continue
        called = (
            sources.called(level.node, level.place) if isinstance(level.node, ast.Call) else None
        )
        has_cache = isinstance(called, Place) and is_cached(called.function)
        for at in range(number + 1):
            if any(is_cached(inner.function) for inner in levels[at + 1 : number + 1]):
                continue
            loops = levels[at].loops()
            if levels[at].is_called_again:
                loops.insert(0, levels[at].as_loop())
            for loop in loops:
                value = _Inputs(levels, at, loop, sources).of_call(number)
                # The cache of a function has the one result after the first iteration.
                is_kept = has_cache and value is _Value.SAME
                if value <= _Value.REPEATS and value not in found and not is_kept:
                    one = _repeated(levels, number, at, loop, value)
                    found[value] = msgspec.structs.replace(one, has_cache=has_cache)
        if _Value.SAME in found:
            break
    return [found[value] for value in sorted(found)]


def _repeated(
    levels: Sequence[_Level], number: int, at: int, loop: Loop, value: _Value
) -> Repeated:
    outer = levels[at]
    text = outer.file.line_text(loop.line).rstrip(":")
    return Repeated(
        calls=tuple(level.frame for level in levels[: number + 1]),
        loop=Frame(outer.frame.file, outer.frame.function, loop.line, text),
        last=loop.last,
        is_same=value is _Value.SAME,
    )


def _levels(frames: Sequence[Frame], sources: Sources) -> list[_Level]:
    """Return the program's functions on a stack, the outermost first."""
    levels: list[_Level] = []
    caller = ""
    for place in range(len(frames) - 1, -1, -1):
        frame = frames[place]
        if is_library(frame.file) or frame.file.startswith("<"):
            caller = frame.file
            continue
        file = sources.file(frame.file)
        if file is None or not 0 < frame.line <= len(file.lines):
            return []  # what happens in this function is not known
        inner = frames[place - 1] if place else None
        function = file.function_at(frame.line)
        level = _Level(
            frame,
            Place(frame.file, function),
            file,
            file.active(frame.line, frame.text),
            caller,
            inner is not None and _gets_next(inner, sources),
        )
        if levels and _INNER.search(frame.function) and levels[-1].function is function:
            levels.pop()
        levels.append(level)
        caller = ""
    return levels


def _gets_next(inner: Frame, sources: Sources) -> bool:
    if is_library(inner.file):
        return _NEXT.search(inner.function) is not None
    file = sources.file(inner.file)
    if file is None or inner.line < 1:
        return False
    function = file.function_at(inner.line)
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in function.nodes)


def _may_be_repeated(level: _Level, sources: Sources) -> bool:
    """Return whether a level's expression has a result that is used, and no other effect."""
    node = level.node
    if level.gets_next or not isinstance(node, (ast.Call, ast.BinOp)):
        return False
    if isinstance(node, ast.Call):
        is_iterator = root_name(node.func) in _ITERATORS
        if is_iterator or not sources.is_pure(node, level.place):
            return False
    for one in level.function.nodes:
        if isinstance(one, ast.Expr) and one.value is node:
            # `scaler.fit(x)`: the result is in the object, which is new in each iteration.
            method = node.func if isinstance(node, ast.Call) else None
            return isinstance(method, ast.Attribute) and method.attr.startswith("fit")
    return True


def _is_measured(level: _Level) -> bool:
    """Return whether the time of a level's line is taken: it may be repeated for this."""
    line = level.frame.line
    before = level.file.lines[max(0, line - 1 - _BESIDE) : line - 1]
    after = level.file.lines[line : line + _BESIDE]
    return all(
        any(_TIMES.search(one.decode("utf-8", "replace")) for one in lines)
        for lines in (before, after)
    )


class _Inputs:
    """Where the inputs of a call come from, for one loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        at: the level that has the loop.
        loop: the loop.
        sources: the files of the program.
    """

    def __init__(self, levels: Sequence[_Level], at: int, loop: Loop, sources: Sources) -> None:
        self._levels, self._at, self._loop, self._sources = levels, at, loop, sources
        self._open: set[tuple[int, str]] = set()
        """Names that are being looked at: one that depends on itself varies."""
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
        self._body = sources.all_nodes(loop.node, self._loop_nodes)

    def of_call(self, number: int) -> _Value:
        """Return how the inputs of a level's expression differ between iterations."""
        node = self._levels[number].node
        if node is None:
            return _Value.VARIES
        if not isinstance(node, ast.Call):
            return self._of(number, node)
        value = self._of_arguments(number, node)
        if value is _Value.REPEATS and self._sources.is_loader(
            self._levels[-1].node, self._levels[-1].place
        ):
            return _Value.VARIES  # a training that reads its data in each epoch
        place = self._levels[number].place
        if self._sources.reads_files(node, place) and self._sources.changes_outside(
            self._loop_nodes, self._levels[self._at].place
        ):
            return _Value.VARIES
        return value

    def _of_arguments(self, number: int, call: ast.Call) -> _Value:
        values = [self._of(number, one) for one in (*call.args, *call.keywords)]
        if isinstance(call.func, ast.Attribute):
            # A pure method of the program reads only attributes that do not change.
            is_own = isinstance(self._sources.called(call, self._levels[number].place), Place)
            of_object = self._which if is_own else self._of_receiver
            if call.func.attr in known().methods.pure:
                of_object = self._of
            values.append(of_object(number, call.func.value))
        else:
            values.append(self._of(number, call.func))
        return _together(values)

    def _of_receiver(self, number: int, node: ast.expr) -> _Value:
        """Return it for the object of a method; a new object may be changed by the method."""
        if isinstance(node, ast.Name):
            function = self._levels[number].function
            given = function.assigned.get(node.id, [])
            if self._is_used_again(number, node, given):
                return _Value.VARIES
            is_inside = number > self._at or self._is_function or all(map(self._is_in_loop, given))
            if len(given) == 1 and is_inside and isinstance(given[0].value, ast.Call):
                return self._of_assigned(number, given[0])
        return self._of(number, node)

    def _is_used_again(self, number: int, node: ast.Name, given: Sequence[Assigned]) -> bool:
        """Return whether a loop calls methods of one object, such as a file, several times."""
        level = self._levels[number]
        inner = level.function.loops_at(node.lineno)
        if not inner or not self._sources.is_new(node.id, level.function):
            return False
        return not any(inner[-1].first <= one.line <= inner[-1].last for one in given)

    def _which(self, number: int, node: ast.expr) -> _Value:
        """Return whether an expression is the same object; it may be changed in the loop."""
        self._identities += 1
        try:
            return self._of(number, node)
        finally:
            self._identities -= 1

    def _of(self, number: int, node: ast.AST) -> _Value:
        match node:
            case ast.Constant():
                return _Value.SAME
            case ast.Name():
                return self._of_name(number, node.id)
            case ast.Attribute():
                return self._of_attribute(number, node)
            case ast.Call() if self._is_permutation(number, node):
                return _Value.SHUFFLED
            case ast.Subscript():
                return self._of_subscript(number, node)
            case ast.Call():
                if not self._sources.is_pure(node, self._levels[number].place):
                    return _Value.VARIES
                return self._of_arguments(number, node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._of_comprehension(number, node)
            case ast.Lambda() | ast.Yield() | ast.YieldFrom() | ast.Await():
                return _Value.VARIES
        return self._of_parts(number, node)

    def _of_parts(self, number: int, node: ast.AST) -> _Value:
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
        return all(self._of(number, one) is _Value.SAME for one in call.args)

    def _of_subscript(self, number: int, node: ast.Subscript) -> _Value:
        whole, part = self._of(number, node.value), self._of(number, node.slice)
        if whole is _Value.SHUFFLED and part <= _Value.REPEATS:
            # A part of the order is another one each time; all items are the same.
            return whole if isinstance(node.slice, ast.Slice) else _Value.REPEATS
        return _together((whole, part))

    def _of_comprehension(
        self, number: int, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> _Value:
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

    def _of_attribute(self, number: int, node: ast.Attribute) -> _Value:
        level = self._levels[number]
        root = root_name(node)
        if root and (is_imported(root, level.function) or root in level.function.module.classes):
            return _Value.SAME
        names = known().names
        if node.attr in names.attributes or root in names.settings:
            return self._of(number, node.value)
        if self._sources.is_constant_attribute(node.attr, level.place):
            return self._which(number, node.value)
        return _Value.VARIES

    def _of_name(self, number: int, name: str) -> _Value:
        if name in self._bound:
            return _Value.SAME
        key = (number, name)
        if key in self._open:
            return _Value.VARIES
        self._open.add(key)
        try:
            return self._of_new_name(number, name)
        finally:
            self._open.discard(key)

    def _of_new_name(self, number: int, name: str) -> _Value:
        level = self._levels[number]
        function = level.function
        given = function.assigned.get(name, [])
        if not function.binds(name):
            return self._of_outer_name(number, name)
        if name == "self" and function.owner is not None:
            return self._of_parameter(number, name) if number > self._at else _Value.SAME
        if number < self._at:
            return self._before(number, name)
        if number == self._at and not self._is_function:
            return self._of_name_beside(number, name, given)
        nodes = function.nodes
        changed = self._if_changed(name, nodes, level.place)
        values = [self._of_assigned(number, one) for one in given]
        if name in function.params:
            values.append(self._of_parameter(number, name))
        return max(*values, changed)

    def _of_name_beside(self, number: int, name: str, given: Sequence[Assigned]) -> _Value:
        """Return it for a name of the function that has the loop."""
        place = self._levels[number].place
        if any(one.loop is self._loop for one in given):
            return _Value.VARIES
        changed = self._if_changed(name, self._body, place)
        inside = [one for one in given if self._is_in_loop(one)]
        if not inside:
            return max(self._before(number, name), changed)
        return max(*(self._of_assigned(number, one) for one in inside), changed)

    def _if_changed(self, name: str, nodes: tuple[ast.AST, ...], place: Place) -> _Value:
        """Return how much some code may change the object of a name."""
        if self._identities:
            return _Value.SAME
        every = place.function.nodes
        names = {name, *self._sources.other_names(name, every, place)}
        if not any(self._sources.is_changed_in(one, nodes, place) for one in names):
            return _Value.SAME
        others = tuple(node for node in nodes if not _shuffles(node, name))
        if len(others) == len(nodes):
            return _Value.VARIES
        is_only_shuffled = not any(self._sources.is_changed_in(one, others, place) for one in names)
        return _Value.SHUFFLED if is_only_shuffled else _Value.VARIES

    def _is_in_loop(self, one: Assigned) -> bool:
        return self._loop.first <= one.line <= self._loop.last

    def _of_assigned(self, number: int, one: Assigned) -> _Value:
        if one.value is None:
            return _Value.VARIES
        value = self._of(number, one.value)
        if one.loop is None or value is _Value.VARIES:
            return value
        if value is _Value.SHUFFLED:
            return _Value.REPEATS
        is_finite = self._is_collection(number, one.value)
        return _Value.REPEATS if is_finite else _Value.VARIES

    def _before(self, number: int, name: str) -> _Value:
        """Return it for a name that got its value before the loop: an optimizer may change it."""
        function = self._levels[number].function
        values = [one.value for one in function.assigned.get(name, []) if one.value is not None]
        if any(map(may_be_trained, values)):
            return _Value.VARIES
        argument = self._argument(number, name) if name in function.params else None
        if argument is not None and may_be_trained(argument):
            return _Value.VARIES
        if argument is not None:
            values.append(argument)
        place = self._levels[self._at].place
        if (
            number == self._at
            and not self._identities
            and any(
                self._sources.is_changed_in(other, self._body, place)
                for value in values
                for other in _names_in(value)
                if other != name and self._sources.shares(value, other, place)
            )
        ):
            return _Value.VARIES
        if isinstance(argument, ast.Name) and number:
            return self._before(number - 1, argument.id)
        return _Value.SAME

    def _of_outer_name(self, number: int, name: str) -> _Value:
        """Return it for a name of a function around, of the file, or of Python."""
        function = self._levels[number].function
        outer = function.parent
        while outer is not None and not outer.knows(name):
            outer = outer.parent
        for other in range(number - 1, self._at - 1, -1):
            if outer is not None and self._levels[other].function is outer:
                return self._of_name(other, name)
        is_constant = self._sources.is_constant_name(name, self._levels[number].place)
        return _Value.SAME if is_constant else _Value.VARIES

    def _of_parameter(self, number: int, name: str) -> _Value:
        level = self._levels[number]
        if level.caller or not number:
            if name == "self":
                return _Value.SAME
            if any(
                re.search(library, level.caller) and name in level.function.params[varying:]
                for library, varying in _FIRST_VARY
            ):
                return _Value.SAME
            # In each pass over a data loader, a data set is asked for the same indices.
            is_item = level.function.name == "__getitem__" and number > self._at
            return _Value.REPEATS if is_item and not self._is_of_loader() else _Value.VARIES
        if name == "self":
            return self._of_own_self(number)
        argument = self._argument(number, name)
        if argument is not None:
            return self._of(number - 1, argument)
        default = level.function.default(name)
        is_left_out = isinstance(default, ast.Constant) and self._is_plain_call(number)
        return _Value.SAME if is_left_out else _Value.VARIES

    def _is_of_loader(self) -> bool:
        return self._loop.line == self._levels[self._at].frame.line

    def _of_own_self(self, number: int) -> _Value:
        call = self._levels[number - 1].node
        if isinstance(call, ast.Attribute):  # a property
            return self._of(number - 1, call.value)
        if not isinstance(call, ast.Call):
            return _Value.VARIES
        if self._levels[number].function.name in SET_UP:
            return _Value.SAME  # the object is new
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        return self._which(number - 1, receiver)

    def _is_plain_call(self, number: int) -> bool:
        call = self._levels[number - 1].node
        if not isinstance(call, ast.Call):
            return False
        has_stars = any(isinstance(one, ast.Starred) for one in call.args)
        return not has_stars and all(word.arg for word in call.keywords)

    def _argument(self, number: int, name: str) -> ast.expr | None:
        """Return the expression that a caller gives for a parameter; None if it is not clear."""
        if not number or self._levels[number].caller:
            return None
        function, call = self._levels[number].function, self._levels[number - 1].node
        if not isinstance(call, ast.Call) or not self._is_plain_call(number):
            return None
        params = function.params
        if function.owner is not None and params[:1] == ["self"]:
            params = params[1:]
        for word in call.keywords:
            if word.arg == name:
                return word.value
        given = dict(zip(params, call.args, strict=False))
        return given.get(name)

    def _is_collection(self, number: int, node: ast.expr, depth: int = 0) -> bool:
        """Return whether an iterable is known to give the same items each time."""
        function = self._levels[number].function
        match node:
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return True
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.Constant():
                return True
            case ast.Subscript():
                return self._is_collection(number, node.value, depth)
            case ast.Attribute():
                if node.attr in _OF_COLLECTIONS:
                    return True
                place = self._levels[number].place
                is_constant = self._sources.is_constant_attribute(node.attr, place)
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
                    return all(self._is_collection(number, one, depth + 1) for one in values)
                argument = self._argument(number, node.id) if node.id in function.params else None
                if argument is not None:
                    return self._is_collection(number - 1, argument, depth + 1)
        return False

    def _given(self, number: int, name: str) -> Iterable[Assigned]:
        function: Function | None = self._levels[number].function
        while function is not None and not (name in function.assigned or name in function.params):
            function = function.parent
        return function.assigned.get(name, []) if function is not None else []

    def _makes_collection(self, number: int, call: ast.Call, depth: int) -> bool:
        place = self._levels[number].place
        called = self._sources.called(call, place)
        if isinstance(called, str) and called in ("enumerate", "zip", "reversed"):
            return all(self._is_collection(number, one, depth + 1) for one in call.args)
        if isinstance(called, str) and "." not in called:
            return called in _COLLECTIONS
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_COLLECTIONS:
            return True
        if isinstance(called, Place) and _returns_list(called.function):
            return True
        return self._sources.is_pure(call, place)


def _together(values: Iterable[_Value]) -> _Value:
    """Return how a value differs that is made of several others."""
    value = max(values, default=_Value.SAME)
    return _Value.VARIES if value is _Value.SHUFFLED else value


def _shuffles(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or [root_name(one) for one in node.args] != [name]:
        return False
    function = node.func
    return isinstance(function, ast.Attribute) and function.attr == "shuffle"


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


def _names_in(value: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
