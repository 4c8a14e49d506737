"""Whether a call in a program gives the same result again, and changes nothing else."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from teho.source.changes import Changes, may_set, named_values, stored, stored_or_named, targets_of
from teho.source.known import (
    has_harmless_decorators,
    is_mutator,
    is_pure_name,
    is_view,
    known,
    may_be_trained,
)
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place, Program, is_imported

__all__ = ["SET_UP", "Purity"]

SET_UP = frozenset(("__init__", "__post_init__", "__attrs_post_init__", "setup", "build"))
"""Methods that run once for an object."""


class Purity:
    """Finds calls that change nothing, and names and attributes that never change.

    Args:
        program: the files.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.changes = Changes(program)
        self._pure: dict[tuple[int, bool], bool] = {}
        self._constant: dict[tuple[int, str], bool] = {}

    def is_pure(self, call: ast.Call, at: Place) -> bool:
        """Return whether a call certainly changes nothing but objects that it makes.

        Called again with the same arguments, it gives the same result.

        Args:
            call: the call.
            at: the function that it is in.
        """
        if any(word.arg in ("out", "inplace") for word in call.keywords):
            return False
        called = self.program.called(call, at)
        if isinstance(called, Place):
            return self.is_pure_function(called)
        if isinstance(called, ast.ClassDef):
            return self._makes_only(called, at)
        if isinstance(called, str):
            return is_pure_name(called, call) and self._gets_pure_functions(call, at)
        if isinstance(call.func, ast.Attribute):
            return self._is_pure_method(call.func, at)
        return self.program.is_of_library(call.func, at)

    def _gets_pure_functions(self, call: ast.Call, at: Place) -> bool:
        """Return whether the program's functions among the arguments are pure: `map(f, items)`."""
        arguments = (*call.args, *(word.value for word in call.keywords))
        given = (
            self.program.named(one.id, at)
            for one in arguments
            if isinstance(one, ast.Name) and not at.function.binds(one.id)
        )
        return all(self.is_pure_function(one) for one in given if isinstance(one, Place))

    def keeps_all(self, call: ast.Call, at: Place) -> bool:
        """Return whether a call is pure, and does not even change objects that its function made.

        `solver.advance()` may change the solver, also if the function has just made the solver.
        """
        if not self.is_pure(call, at):
            return False
        if not isinstance(call.func, ast.Attribute) or self.program.called(call, at) is not None:
            return True
        return self._keeps_object(call.func, at)

    def _is_pure_method(self, method: ast.Attribute, at: Place) -> bool:
        if method.attr in known().methods.impure:
            return False
        name = root_name(method.value)
        return self._keeps_object(method, at) or (bool(name) and self.is_new(name, at.function))

    def _keeps_object(self, method: ast.Attribute, at: Place) -> bool:
        """Return whether a method of a library certainly does not change its object."""
        receiver = method.value
        if method.attr in known().methods.pure or isinstance(receiver, ast.Constant):
            return True
        if isinstance(receiver, ast.Call):  # `Vectorizer().fit_transform(x)`: the object is new
            return True
        return self.program.is_of_library(receiver, at) and not is_mutator(method.attr)

    def _makes_only(self, owner: ast.ClassDef, at: Place) -> bool:
        init = at.function.module.inner.get(f"{owner.name}.__init__")
        return init is None or self.is_pure_function(Place(at.path, init), makes=True)

    def is_pure_function(self, place: Place, *, makes: bool = False) -> bool:
        """Return whether a function of the program changes nothing but objects that it makes.

        Args:
            place: the function.
            makes: whether it may also change `self`, which is new.
        """
        key = id(place.function.node), makes
        if key not in self._pure:
            self._pure[key] = False  # a function that calls itself
            self._pure[key] = self._body_is_pure(place, makes=makes)
        return self._pure[key]

    def _body_is_pure(self, place: Place, *, makes: bool) -> bool:
        function = place.function
        if function.outer_names or isinstance(function.node, (ast.Module, ast.AsyncFunctionDef)):
            return False
        if not has_harmless_decorators(function):
            return False
        return all(
            self._is_pure_node(node, place, makes=makes)
            and (makes or self._reads_only_constants(node, place))
            for node in function.nodes
        )

    def _is_pure_node(self, node: ast.AST, place: Place, *, makes: bool) -> bool:
        function = place.function
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        for target in stored(node):
            name = root_name(target)
            if not (self.is_new(name, function) or (makes and name == "self")):
                return False
        if isinstance(node, ast.AugAssign) and root_name(node.target) in function.params:
            return False
        return not isinstance(node, ast.Call) or self.is_pure(node, place)

    def _reads_only_constants(self, node: ast.AST, place: Place) -> bool:
        """Return whether a node of a function reads no global name or attribute that changes."""
        function = place.function
        if isinstance(node, ast.Name):
            return function.binds(node.id) or self.is_constant_name(node.id, place)
        is_self = isinstance(node, ast.Attribute) and dotted_name(node) == f"self.{node.attr}"
        if isinstance(node, ast.Attribute) and is_self and function.owner is not None:
            is_method = f"{function.owner.name}.{node.attr}" in function.module.inner
            return is_method or self.is_constant_attribute(node.attr, place)
        return True

    def is_constant_name(self, name: str, at: Place) -> bool:
        """Return whether a name of a function around, of the file or of Python never changes."""
        outer = at.function.parent
        while outer is not None and not outer.knows(name):
            outer = outer.parent
        if outer is None:
            return hasattr(builtins, name) or at.function.knows(name)
        given = outer.assigned.get(name, [])
        if not given:
            return True  # a function, a class, an import, or a parameter
        key = id(outer.node), name
        if key not in self._constant:
            self._constant[key] = False
            self._constant[key] = self._is_constant(name, Place(at.path, outer))
        return self._constant[key]

    def _is_constant(self, name: str, place: Place) -> bool:
        (first, *others) = place.function.assigned[name]
        if others or first.value is None or first.loop or may_be_trained(first.value):
            return False
        everything = self.program.all_nodes(place.function.node, [place.function.node])
        if any(
            isinstance(one, (ast.Global, ast.Nonlocal)) and name in one.names for one in everything
        ):
            return False
        return not self.changes.is_changed_in(name, everything, place)

    def is_constant_attribute(self, name: str, at: Place) -> bool:
        """Return whether an attribute of the program's objects is only set when they are made.

        Args:
            name: the attribute.
            at: a function of the file with the class.
        """
        module = at.function.module
        key = id(module.node), f".{name}"
        if key not in self._constant:
            self._constant[key] = False
            self._constant[key] = self._is_set_once(name, Place(at.path, module))
        return self._constant[key]

    def _is_set_once(self, name: str, module: Place) -> bool:
        given: list[ast.expr | None] = []
        for owner in module.function.classes.values():
            given += [
                one.value
                for one in owner.body
                if isinstance(one, (ast.Assign, ast.AnnAssign))
                and name
                in {target.id for target in targets_of(one) if isinstance(target, ast.Name)}
            ]
        for function in module.function.every():
            nodes = function.nodes
            if function.name in SET_UP:
                given += _values_of_self(nodes, name)
                continue
            names = {
                dotted_name(node)
                for node in nodes
                if isinstance(node, ast.Attribute) and node.attr == name and dotted_name(node)
            }
            place = Place(module.path, function)
            if any(may_set(node, name) for node in nodes):
                return False
            if any(
                one in map(dotted_name, stored_or_named(node)) for one in names for node in nodes
            ):
                return False
            if any(self.changes.is_changed_in(one, nodes, place) for one in names):
                return False
        return bool(given) and not any(may_be_trained(one) for one in given if one is not None)

    def is_new(self, name: str, function: Function, seen: frozenset[str] = frozenset()) -> bool:
        """Return whether a local name always has an object that its function made, or a part."""
        if name in seen or name in function.params or name in function.outer_names:
            return False
        given = function.assigned.get(name, [])
        values = [one.value for one in given if one.value is not None]
        return bool(values) and all(self._makes(one, function, seen | {name}) for one in values)

    def _makes(self, value: ast.expr, function: Function, seen: frozenset[str]) -> bool:
        """Return whether a value is a new object, or a part of one."""
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            root: ast.AST = value
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if not isinstance(root, ast.Name):
                return isinstance(root, ast.Call)
            return self.is_new(root.id, function, seen)
        if isinstance(value, ast.IfExp):
            branches = (value.body, value.orelse)
            return all(self._makes(one, function, seen) for one in branches)
        if isinstance(value, ast.Call) and is_view(value):
            parts = [*value.args]
            if isinstance(value.func, ast.Attribute) and not is_imported(
                root_name(value.func), function
            ):
                parts = [value.func.value]
            return all(
                self._makes(one, function, seen) or isinstance(one, ast.Constant) for one in parts
            )
        return not isinstance(value, ast.Await)


def _values_of_self(nodes: Iterable[ast.AST], name: str) -> list[ast.expr | None]:
    """Return the values that code gives to `self.name`."""
    return [
        value
        for node in nodes
        for target, value in named_values(node)
        if dotted_name(target) == f"self.{name}"
    ]
