"""Whether some code of a program may change an object."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.known import is_mutator, known
from teho.source.parsed import COMPREHENSIONS, dotted_name, root_name
from teho.source.program import Place, Program

__all__ = ["Changes", "may_set", "named_values", "stored", "stored_or_named", "targets_of"]

_CHANGES_ARGUMENTS = frozenset(
    (
        *("shuffle", "heappush", "heappop", "heapify", "copyto", "put", "fill_diagonal", "setattr"),
        *("next", "readinto", "recv_into"),
    )
)
"""Functions and methods that change their arguments."""
_ONLY_READS = lazy_pattern(
    r"print|(.*\.)?(logging|logger|warnings|wandb|mlflow|plt|pyplot)\..*|"
    r".*\.(save\w*|dump\w*|write\w*|imwrite|imsave|imshow|plot\w*|assert_\w+|i?send\w*|export\w*)"
)
"""Functions of libraries whose result is not needed, although they only read their arguments."""
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


class _Object(NamedTuple):
    """An object in some code."""

    name: str
    nodes: tuple[ast.AST, ...]
    at: Place
    has_position: bool
    """Whether it is a file or an iterator: a function that reads from it moves its position."""


class Changes:
    """Finds the code that may change an object.

    Args:
        program: the files.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._changed: dict[tuple[str, int, bool], tuple[tuple[ast.AST, ...], bool]] = {}
        """Name, id of some nodes, `has_position` -> the nodes, which keep their id, and the result.
        """
        self._names: dict[tuple[str, int, int], tuple[tuple[ast.AST, ...], frozenset[str]]] = {}
        """Name, id of some nodes, id of the function -> the nodes, and other names."""

    def is_changed_in(
        self, name: str, nodes: tuple[ast.AST, ...], at: Place, *, has_position: bool = False
    ) -> bool:
        """Return whether the object of a name may be changed by some code.

        A name that gets another object is not meant, except with `+=`. Other names of the object,
        and parameters that get it, are followed.

        Args:
            name: the name, or a dotted name such as `self.part`.
            nodes: all nodes of the code.
            at: the function that the code is in.
            has_position: whether the object is a file or an iterator: each function of a library
                that gets it then moves its position.
        """
        first = name, id(nodes), has_position
        followed: dict[tuple[str, int, bool], tuple[ast.AST, ...]] = {}
        waiting = [_Object(name, nodes, at, has_position)]
        while waiting and first not in self._changed:
            one = waiting.pop()
            key = one.name, id(one.nodes), has_position
            is_changed = self._changed.get(key, (one.nodes, None))[1]
            if key in followed or is_changed is False:
                continue
            followed[key] = one.nodes
            if is_changed or self._is_changed_here(one):
                self._changed[first] = nodes, True
            waiting += self._elsewhere(one)
        if first not in self._changed:  # then none of all that was followed is changed
            self._changed |= {key: (code, False) for key, code in followed.items()}
        return self._changed[first][1]

    def is_result_changed(self, result: ast.expr, at: Place) -> bool:
        """Return whether a function may change the object that one of its expressions gives."""
        nodes = at.function.nodes
        if any(self.is_changed_in(name, nodes, at) for name in self._names_of(result, at)):
            return True
        for node in nodes:
            called = self._program.called(node, at) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and isinstance(called, Place):
                for param, argument in _given(node, called):
                    if _gives(argument, result) and self.is_changed_in(
                        param, called.function.nodes, called
                    ):
                        return True
        return False

    def is_returned(self, result: ast.expr, at: Place) -> bool:
        """Return whether a function returns the object that one of its expressions gives."""
        names = self._names_of(result, at)
        returned = [
            node.value
            for node in at.function.nodes
            if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None
        ]
        return any(
            _gives(value, result) or any(self.shares(value, name, at) for name in names)
            for value in returned
        )

    @staticmethod
    def _names_of(result: ast.expr, at: Place) -> set[str]:
        given = (pair for node in at.function.nodes for pair in named_values(node))
        return {dotted_name(target) for target, value in given if _gives(value, result)} - {""}

    def _is_changed_here(self, one: _Object) -> bool:
        for node in one.nodes:
            if any(_begins(target, one.name) for target in stored(node)):
                return True
            if isinstance(node, ast.AugAssign) and dotted_name(node.target) == one.name:
                return True
            if isinstance(node, ast.Call) and self._call_changes(node, one):
                return True
            if isinstance(node, ast.Expr) and self._is_for_its_effect(node.value, one):
                return True
        return False

    def _is_for_its_effect(self, call: ast.expr, one: _Object) -> bool:
        """Return whether a call whose result is not used gets the object, to change it.

        `dist.all_gather_object(parts, mine)`: without an effect, no program would call it.
        """
        called = self._program.called(call, one.at) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(called, str):
            return False
        if _ONLY_READS.fullmatch(called):
            return False
        arguments = [*call.args, *(word.value for word in call.keywords)]
        return any(self.shares(argument, one.name, one.at) for argument in arguments)

    def _elsewhere(self, one: _Object) -> Iterator[_Object]:
        """Yield the same object under its other names, and in the functions that get it."""
        for name in self.other_names(one.name, one.nodes, one.at):
            yield one._replace(name=name)
        for node in one.nodes:
            called = self._program.called(node, one.at) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and isinstance(called, Place):
                for name in self._parameters(node, one.name, called, one.at, frozenset()):
                    yield _Object(name, called.function.nodes, called, one.has_position)

    def other_names(self, name: str, nodes: tuple[ast.AST, ...], at: Place) -> frozenset[str]:
        """Return the names that the code gives to the same object, or to its parts."""
        key = name, id(nodes), id(at.function)
        if key not in self._names:
            self._names[key] = nodes, frozenset(self._find_other_names(name, nodes, at))
        return self._names[key][1]

    def _find_other_names(self, name: str, nodes: tuple[ast.AST, ...], at: Place) -> set[str]:
        found: set[str] = set()
        for node in nodes:
            for target, value in named_values(node):
                is_other = isinstance(target, ast.Name) and target.id != name.partition(".")[0]
                if is_other and self.shares(value, name, at):
                    found.add(root_name(target))
        return found

    def shares(
        self, value: ast.expr, name: str, at: Place, inside: frozenset[int] = frozenset()
    ) -> bool:
        """Return whether a value may be the object of a name, a part of it, or have it as a part.

        Args:
            value: the expression.
            name: the name, or a dotted name.
            at: the function that the expression is in.
            inside: the functions that are being examined: one may call itself.
        """
        if dotted_name(value) == name or _begins(value, name):
            return not (
                isinstance(value, ast.Attribute)
                and value.attr in ("shape", "size", "dtype", "ndim")
            )
        if isinstance(value, ast.Call):
            return self._result_shares(value, name, at, inside)
        if isinstance(value, ast.IfExp):
            return any(self.shares(one, name, at, inside) for one in (value.body, value.orelse))
        if isinstance(value, _CONTAINERS):
            parts = [one for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr)]
            return any(self.shares(one, name, at, inside) for one in parts)
        if isinstance(value, COMPREHENSIONS) and not isinstance(value, ast.DictComp):
            bound = {
                one.id
                for inner in value.generators
                if self.shares(inner.iter, name, at, inside)
                for one in ast.walk(inner.target)
                if isinstance(one, ast.Name)
            }
            return root_name(value.elt) in bound
        return False

    def _result_shares(self, call: ast.Call, name: str, at: Place, inside: frozenset[int]) -> bool:
        arguments = [*call.args, *(word.value for word in call.keywords)]
        method = call.func
        called = self._program.called(call, at)
        if isinstance(called, Place):
            key = id(called.function.node)
            if key in inside:
                return False
            inside |= {key}
            names = self._parameters(call, name, called, at, inside)
            returned = [
                one.value
                for one in called.function.nodes
                if isinstance(one, ast.Return) and one.value is not None
            ]
            return any(
                self.shares(value, one, called, inside) for value in returned for one in names
            )
        if isinstance(method, ast.Attribute) and not isinstance(called, str):
            is_view = method.attr in known().methods.views
            return is_view and self.shares(method.value, name, at, inside)
        if isinstance(called, str) and called.rpartition(".")[2] in known().names.views:
            return any(self.shares(one, name, at, inside) for one in arguments)
        return False

    def _parameters(
        self, call: ast.Call, name: str, called: Place, at: Place, inside: frozenset[int]
    ) -> list[str]:
        """Return the parameters of a function of the program that get the object of a name."""
        return [
            param
            for param, argument in _given(call, called)
            if self.shares(argument, name, at, inside)
        ]

    def _call_changes(self, call: ast.Call, one: _Object) -> bool:
        """Return whether a call changes an object itself; the program's functions are followed."""
        name, at = one.name, one.at
        method, called = call.func, self._program.called(call, at)
        if isinstance(called, Place):
            return False
        if any(word.arg == "out" and self.shares(word.value, name, at) for word in call.keywords):
            return True
        last = called.rpartition(".")[2] if isinstance(called, str) else ""
        if isinstance(method, ast.Attribute):
            last = method.attr
        if one.has_position or last in _CHANGES_ARGUMENTS:
            arguments = [*call.args, *(word.value for word in call.keywords)]
            if any(self.shares(argument, name, at) for argument in arguments):
                return True
        if isinstance(called, str):
            return False
        if isinstance(method, ast.Attribute) and self.shares(method.value, name, at):
            words = known().methods
            is_harmless = method.attr in words.pure or method.attr in words.views
            is_of_library = self._program.is_of_library(method.value, at)
            return not (is_harmless or (is_of_library and not is_mutator(method.attr)))
        return False


def _given(call: ast.Call, called: Place) -> list[tuple[str, ast.expr]]:
    """Return the parameters of a function of the program, each with what a call gives it."""
    params = called.function.params_of_call
    found: list[tuple[str, ast.expr]] = []
    if params != called.function.params and isinstance(call.func, ast.Attribute):
        found.append(("self", call.func.value))
    found += zip(params, call.args, strict=False)
    return found + [(word.arg, word.value) for word in call.keywords if word.arg]


def _gives(value: ast.expr, result: ast.expr) -> bool:
    """Return whether a value is the result of an expression, a part of it, or has it as a part."""
    if value is result:
        return True
    if isinstance(value, ast.IfExp):
        parts: list[ast.expr] = [value.body, value.orelse]
    elif isinstance(value, _CONTAINERS):
        parts = [one for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr)]
    elif isinstance(value, (ast.Attribute, ast.Subscript, ast.Starred)):
        parts = [value.value]
    elif isinstance(value, COMPREHENSIONS) and not isinstance(value, ast.DictComp):
        parts = [value.elt]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        is_view = value.func.attr in known().methods.views
        parts = [value.func.value] if is_view else []
    else:
        parts = []
    return any(_gives(one, result) for one in parts)


def stored(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the parts of objects that a statement changes: `x.part = …`, `x[0] += …`."""
    return (one for one in stored_or_named(node) if isinstance(one, (ast.Attribute, ast.Subscript)))


def stored_or_named(node: ast.AST) -> list[ast.expr]:
    """Return the names, and the parts of objects, that a statement gives a value or deletes."""
    if isinstance(node, ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = targets_of(node)
    else:
        return []
    found: list[ast.expr] = []
    while targets:
        target = targets.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            targets.extend(target.elts)
        else:
            found.append(target)
    return found


def targets_of(
    node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor,
) -> list[ast.expr]:
    """Return what a statement gives a value."""
    return list(node.targets) if isinstance(node, ast.Assign) else [node.target]


def named_values(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Return the targets of a statement, each with the value that it gets, or that it is from."""
    value: ast.expr | None = None
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        value = node.value
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        value = node.iter
    if value is None:
        return []
    if isinstance(node, ast.NamedExpr):
        return [(node.target, value)]
    return [(target, value) for target in stored_or_named(node)]


def may_set(node: ast.AST, attribute: str) -> bool:
    """Return whether code may set an attribute by its name: `setattr(x, name, 3)`."""
    if any(isinstance(one, ast.Subscript) and _is_dict(one.value) for one in stored(node)):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else root_name(node.func)
    if name in ("setattr", "__setattr__"):
        texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
        return attribute in texts or not any(isinstance(one, str) for one in texts)
    return isinstance(node.func, ast.Attribute) and is_mutator(name) and _is_dict(node.func.value)


def _is_dict(node: ast.expr) -> bool:
    """Return whether an expression is the dictionary of an object's attributes."""
    if isinstance(node, ast.Call):
        return root_name(node.func) == "vars"
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _begins(node: ast.AST, name: str) -> bool:
    """Return whether `x.part[0].other` begins with a name, such as `x` or `x.part`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
        if isinstance(node, ast.expr) and dotted_name(node) == name:
            return True
    return False
