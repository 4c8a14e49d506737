"""Whether a call in a program gives the same result again, and changes nothing else."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.config.toml import read_toml
from teho.source.parsed import Function, SourceFile, dotted_name, root_name

__all__ = [
    "SET_UP",
    "Place",
    "Sources",
    "is_cached",
    "is_imported",
    "known",
    "may_be_trained",
]

_FILE = Path(__file__).with_name("known_functions.toml")
_DEEPEST = 6
"""Calls of the program's own functions that are followed from one call."""
_DEEPEST_OBJECT = 3
"""Functions and names that are followed from one object."""
_CACHES = frozenset(("lru_cache", "cache", "cached", "cached_property", "memoize", "memoized"))
SET_UP = frozenset(("__init__", "__post_init__", "__attrs_post_init__", "setup", "build"))
"""Methods that run once for an object."""
_HANDLES = re.compile(
    r"(^|\.)(open\w*|File|ZipFile|\w*[rR]eader|Dataset|iterparse|BytesIO|StringIO|Fasta|"
    r"AlignmentFile)$"
)
"""Functions whose result has a position that each call moves, such as a file's."""
_CHANGES_ARGUMENTS = frozenset(
    (
        *("shuffle", "heappush", "heappop", "heapify", "copyto", "put", "fill_diagonal", "setattr"),
        *("next", "readinto", "recv_into"),
    )
)
"""Functions and methods that change their arguments."""
_SEEDED = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_TRAINED = re.compile(r"\b(nn|keras|flax|equinox|haiku)\b|Parameter|Variable|requires_grad|Model\b")


class _Functions(msgspec.Struct, forbid_unknown_fields=True):
    impure: list[str]
    pure: list[str]
    loaders: list[str]
    readers: list[str]
    outside: list[str]


class _Methods(msgspec.Struct, forbid_unknown_fields=True):
    readers: frozenset[str]
    loaders: frozenset[str]
    outside: frozenset[str]
    pure: frozenset[str]
    views: frozenset[str]
    impure: frozenset[str]


class _Names(msgspec.Struct, forbid_unknown_fields=True):
    views: frozenset[str]
    pure: frozenset[str]
    decorators: frozenset[str]
    settings: frozenset[str]
    attributes: frozenset[str]


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    functions: _Functions
    methods: _Methods
    names: _Names


@functools.cache
def known() -> _Known:
    """Return the content of `known_functions.toml`."""
    return msgspec.convert(read_toml(_FILE), _Known)


@functools.cache
def _fits(kind: str, name: str) -> bool:
    """Return whether the dotted name of a function fits a list of `known_functions.toml`."""
    return _pattern(kind).fullmatch(name) is not None


@functools.cache
def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in getattr(known().functions, kind)))


class Place(NamedTuple):
    """A function, and the file that it is in."""

    path: str
    function: Function


class Sources:
    """The files of a program, each parsed once.

    Args:
        read: returns a parsed file by its path; None if it cannot be read.
    """

    def __init__(self, read: Callable[[str], SourceFile | None]) -> None:
        self._read = read
        self._files: dict[str, SourceFile | None] = {}
        self._pure: dict[tuple[int, bool], bool] = {}
        self._constant: dict[tuple[int, str], bool] = {}
        self._called: dict[int, Place | ast.ClassDef | str | None] = {}
        self._changed: dict[tuple[str, int], tuple[tuple[ast.AST, ...], bool]] = {}
        """Name and id of some nodes -> the nodes, which keep their id, and the result."""
        self._parts: dict[int, tuple[ast.AST, ...]] = {}

    def file(self, path: str) -> SourceFile | None:
        """Return a parsed file; None if it cannot be read."""
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def all_nodes(self, of: ast.AST, statements: Sequence[ast.AST]) -> tuple[ast.AST, ...]:
        """Return all nodes of the statements of a loop or function, always the same tuple."""
        if id(of) not in self._parts:
            self._parts[id(of)] = tuple(inner for one in statements for inner in ast.walk(one))
        return self._parts[id(of)]

    # What a call calls.

    def called(self, call: ast.Call, at: Place) -> Place | ast.ClassDef | str | None:
        """Return what a call calls.

        A function of the program, a class of the program, the dotted name of a function of a
        library or of Python, or None if it is not known.
        """
        if id(call) not in self._called:
            self._called[id(call)] = self._find_called(call, at)
        return self._called[id(call)]

    def _find_called(self, call: ast.Call, at: Place) -> Place | ast.ClassDef | str | None:
        target = call.func
        if isinstance(target, ast.Name):
            return self._named(target.id, at)
        if not isinstance(target, ast.Attribute):
            return None
        root, _, rest = dotted_name(target).partition(".")
        owner = at.function.owner
        if root == "self" and owner is not None and "." not in rest:
            return self._method(rest, at, owner.name)
        if root and is_imported(root, at.function):
            return self._imported(root, rest, at)
        return self._method(target.attr, at, "")

    def _named(self, name: str, at: Place) -> Place | ast.ClassDef | str | None:
        function: Function | None = at.function
        while function is not None:
            if name in function.inner:
                return Place(at.path, function.inner[name])
            if name in function.classes:
                return function.classes[name]
            if name in function.imports:
                return self._imported(name, "", at)
            if function.binds(name):
                return None
            function = function.parent
        return name if hasattr(builtins, name) else None

    def _imported(self, root: str, rest: str, at: Place) -> Place | ast.ClassDef | str | None:
        function: Function | None = at.function
        while function is not None and root not in function.imports:
            function = function.parent
        if function is None:
            return None
        dotted = ".".join(filter(None, (function.imports[root], rest)))
        return self._of_program(dotted, at.path) or dotted.lstrip(".")

    def _of_program(self, dotted: str, path: str) -> Place | ast.ClassDef | None:
        """Return a function or class that is in another file of the program."""
        level = len(dotted) - len(dotted.lstrip("."))
        folder = Path(path).parent
        for _ in range(level - 1):
            folder = folder.parent
        module, _, name = dotted.lstrip(".").rpartition(".")
        if not module and not level:
            return None
        parts = module.split(".") if module else []
        folders = [folder] if level else [folder, *list(folder.parents)[: len(parts)]]
        for one in folders:
            base = one.joinpath(*parts)
            for candidate in (base.with_suffix(".py") if parts else None, base / "__init__.py"):
                file = self.file(str(candidate)) if candidate is not None else None
                if file is None:
                    continue
                if name in file.module.inner:
                    return Place(str(candidate), file.module.inner[name])
                if name in file.module.classes:
                    return file.module.classes[name]
        return None

    def _method(self, name: str, at: Place, owner: str) -> Place | None:
        """Return a method of this file: of a class, or the only method with this name."""
        inner = at.function.module.inner
        if owner:
            found = inner.get(f"{owner}.{name}")
            return Place(at.path, found) if found else None
        if name in known().methods.pure or name.startswith("__"):
            return None
        named = [one for key, one in inner.items() if key.endswith(f".{name}")]
        return Place(at.path, named[0]) if len(named) == 1 else None

    # Whether it is pure.

    def is_pure(self, call: ast.Call, at: Place, depth: int = 0) -> bool:
        """Return whether a call certainly changes nothing but objects that it makes.

        Called again with the same arguments, it gives the same result.

        Args:
            call: the call.
            at: the function that it is in.
            depth: calls of the program's own functions above it.
        """
        if depth > _DEEPEST or any(word.arg in ("out", "inplace") for word in call.keywords):
            return False
        called = self.called(call, at)
        if isinstance(called, Place):
            return self._is_pure_function(called, depth + 1)
        if isinstance(called, ast.ClassDef):
            return self._makes_only(called, at, depth + 1)
        if isinstance(called, str):
            return _is_pure_name(called, call) and self._gets_pure_functions(call, at, depth)
        if isinstance(call.func, ast.Attribute):
            return self._is_pure_method(call.func, at)
        return self._is_of_library(call.func, at)

    def _gets_pure_functions(self, call: ast.Call, at: Place, depth: int) -> bool:
        """Return whether the program's functions among the arguments are pure: `map(f, items)`."""
        arguments = (*call.args, *(word.value for word in call.keywords))
        given = (
            self._named(one.id, at)
            for one in arguments
            if isinstance(one, ast.Name) and not at.function.binds(one.id)
        )
        return all(
            self._is_pure_function(one, depth + 1) for one in given if isinstance(one, Place)
        )

    def _is_pure_method(self, method: ast.Attribute, at: Place) -> bool:
        methods = known().methods
        if method.attr in methods.impure:
            return False
        if method.attr in methods.pure or isinstance(method.value, ast.Constant):
            return True
        receiver = method.value
        if isinstance(receiver, ast.Call):  # `Vectorizer().fit_transform(x)`: the object is new
            return True
        if self._is_of_library(receiver, at) and not _is_mutator(method.attr):
            return True
        name = root_name(receiver)
        return bool(name) and self.is_new(name, at.function)

    def _is_of_library(self, node: ast.expr, at: Place) -> bool:
        """Return whether an object was made once by a pure function of a library."""
        value: ast.expr | None = node
        if isinstance(node, ast.Name):
            function: Function | None = at.function
            while function is not None and not function.binds(node.id):
                function = function.parent
            given = function.assigned.get(node.id, []) if function is not None else []
            value = given[0].value if len(given) == 1 and given[0].loop is None else None
        if not isinstance(value, ast.Call):
            return False
        called = self.called(value, at)
        if not isinstance(called, str) or "." not in called or called in _SEEDED:
            return False
        has_position = _HANDLES.search(called) is not None
        return _is_pure_name(called, value) and not (has_position or may_be_trained(value))

    def _makes_only(self, owner: ast.ClassDef, at: Place, depth: int) -> bool:
        init = at.function.module.inner.get(f"{owner.name}.__init__")
        return init is None or self._is_pure_function(Place(at.path, init), depth, makes=True)

    def _is_pure_function(self, place: Place, depth: int, *, makes: bool = False) -> bool:
        key = id(place.function.node), makes
        if key not in self._pure:
            self._pure[key] = False  # a function that calls itself
            self._pure[key] = self._body_is_pure(place, depth, makes=makes)
        return self._pure[key]

    def _body_is_pure(self, place: Place, depth: int, *, makes: bool) -> bool:
        function = place.function
        if function.outer_names or isinstance(function.node, (ast.Module, ast.AsyncFunctionDef)):
            return False
        if not _has_harmless_decorators(function):
            return False
        return all(
            self._is_pure_node(node, place, depth, makes=makes)
            and (makes or self._reads_only_constants(node, place))
            for node in function.nodes
        )

    def _is_pure_node(self, node: ast.AST, place: Place, depth: int, *, makes: bool) -> bool:
        function = place.function
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        for target in _stored(node):
            name = root_name(target)
            if not (self.is_new(name, function) or (makes and name == "self")):
                return False
        if isinstance(node, ast.AugAssign) and root_name(node.target) in function.params:
            return False
        return not isinstance(node, ast.Call) or self.is_pure(node, place, depth)

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

    def _is_constant(self, name: str, of: Place) -> bool:
        (first, *others) = of.function.assigned[name]
        if others or first.value is None or first.loop or may_be_trained(first.value):
            return False
        everything = self.all_nodes(of.function.node, [of.function.node])
        if any(
            isinstance(one, (ast.Global, ast.Nonlocal)) and name in one.names for one in everything
        ):
            return False
        return not self.is_changed_in(name, everything, of)

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
                and name in {target.id for target in _targets(one) if isinstance(target, ast.Name)}
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
            if any(
                one in map(dotted_name, _stored_or_named(node)) for one in names for node in nodes
            ):
                return False
            if any(self.is_changed_in(one, nodes, place) for one in names):
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
        if isinstance(value, ast.Call) and _is_view(value):
            parts = [*value.args]
            if isinstance(value.func, ast.Attribute) and not is_imported(
                root_name(value.func), function
            ):
                parts = [value.func.value]
            return all(
                self._makes(one, function, seen) or isinstance(one, ast.Constant) for one in parts
            )
        return not isinstance(value, ast.Await)

    # Whether an object is changed.

    def is_changed_in(
        self, name: str, nodes: tuple[ast.AST, ...], at: Place, depth: int = 0
    ) -> bool:
        """Return whether the object of a name may be changed by some code.

        A name that gets another object is not meant, except with `+=`.

        Args:
            name: the name, or a dotted name such as `self.part`.
            nodes: all nodes of the code.
            at: the function that the code is in.
            depth: functions and further names that were followed.
        """
        if depth > _DEEPEST_OBJECT:
            return False
        key = name, id(nodes)
        if key not in self._changed:
            self._changed[key] = nodes, False  # a function that calls itself
            self._changed[key] = nodes, self._may_change(name, nodes, at, depth)
        return self._changed[key][1]

    def _may_change(self, name: str, nodes: tuple[ast.AST, ...], at: Place, depth: int) -> bool:
        for node in nodes:
            if any(_begins(target, name) for target in _stored(node)):
                return True
            if isinstance(node, ast.AugAssign) and dotted_name(node.target) == name:
                return True
            if isinstance(node, ast.Call) and self._call_changes(node, name, at, depth):
                return True
        others = self.other_names(name, nodes, at, depth)
        return any(self.is_changed_in(one, nodes, at, depth + 1) for one in others)

    def other_names(
        self, name: str, nodes: tuple[ast.AST, ...], at: Place, depth: int = 0
    ) -> set[str]:
        """Return the names that the code gives to the same object, or to its parts."""
        found: set[str] = set()
        for node in nodes:
            for target, value in _named_values(node):
                is_other = isinstance(target, ast.Name) and target.id != name.partition(".")[0]
                if is_other and self.shares(value, name, at, depth):
                    found.add(root_name(target))
        return found

    def shares(self, value: ast.expr, name: str, at: Place, depth: int = 0) -> bool:
        """Return whether a value may be the object of a name, a part of it, or have it as a part.

        Args:
            value: the expression.
            name: the name, or a dotted name.
            at: the function that the expression is in.
            depth: functions that were followed.
        """
        if dotted_name(value) == name or _begins(value, name):
            return not (
                isinstance(value, ast.Attribute)
                and value.attr in ("shape", "size", "dtype", "ndim")
            )
        if isinstance(value, ast.Call):
            return self._result_shares(value, name, at, depth)
        if isinstance(value, ast.IfExp):
            return any(self.shares(one, name, at, depth) for one in (value.body, value.orelse))
        if isinstance(value, _CONTAINERS):
            parts = [one for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr)]
            return any(self.shares(one, name, at, depth) for one in parts)
        if isinstance(value, _COMPREHENSIONS) and not isinstance(value, ast.DictComp):
            bound = {
                one.id
                for inner in value.generators
                if self.shares(inner.iter, name, at, depth)
                for one in ast.walk(inner.target)
                if isinstance(one, ast.Name)
            }
            return root_name(value.elt) in bound
        return False

    def _result_shares(self, call: ast.Call, name: str, at: Place, depth: int) -> bool:
        arguments = [*call.args, *(word.value for word in call.keywords)]
        method = call.func
        called = self.called(call, at)
        if isinstance(called, Place):
            if depth > _DEEPEST_OBJECT:
                return False
            names = self._parameters(call, name, called, at, depth)
            returned = [
                one.value
                for one in called.function.nodes
                if isinstance(one, ast.Return) and one.value is not None
            ]
            return any(
                self.shares(value, one, called, depth + 1) for value in returned for one in names
            )
        if isinstance(method, ast.Attribute) and not isinstance(called, str):
            is_view = method.attr in known().methods.views
            return is_view and self.shares(method.value, name, at, depth)
        if isinstance(called, str) and called.rpartition(".")[2] in known().names.views:
            return any(self.shares(one, name, at, depth) for one in arguments)
        return False

    def _parameters(
        self, call: ast.Call, name: str, called: Place, at: Place, depth: int
    ) -> list[str]:
        """Return the parameters of a function of the program that get the object of a name."""
        params = called.function.params
        found: list[str] = []
        if called.function.owner is not None and params[:1] == ["self"]:
            params = params[1:]
            if isinstance(call.func, ast.Attribute) and self.shares(
                call.func.value, name, at, depth + 1
            ):
                found.append("self")
        for param, argument in zip(params, call.args, strict=False):
            if self.shares(argument, name, at, depth + 1):
                found.append(param)
        return found + [
            word.arg
            for word in call.keywords
            if word.arg and self.shares(word.value, name, at, depth + 1)
        ]

    def _call_changes(self, call: ast.Call, name: str, at: Place, depth: int) -> bool:
        method, called = call.func, self.called(call, at)
        if isinstance(called, Place):
            names = self._parameters(call, name, called, at, depth)
            body = called.function.nodes
            return any(self.is_changed_in(one, body, called, depth + 1) for one in names)
        if any(word.arg == "out" and self.shares(word.value, name, at) for word in call.keywords):
            return True
        last = called.rpartition(".")[2] if isinstance(called, str) else ""
        if isinstance(method, ast.Attribute):
            last = method.attr
        if last in _CHANGES_ARGUMENTS and any(self.shares(one, name, at) for one in call.args):
            return True
        if isinstance(called, str):
            return False
        if isinstance(method, ast.Attribute) and self.shares(method.value, name, at):
            words = known().methods
            is_harmless = method.attr in words.pure or method.attr in words.views
            is_of_library = self._is_of_library(method.value, at)
            return not (is_harmless or (is_of_library and not _is_mutator(method.attr)))
        return False

    # What it has to do with the world outside.

    def reads_files(self, node: ast.AST, at: Place, depth: int = 0) -> bool:
        """Return whether code may read a file; the file may have other content later."""
        return self._calls_any(node, at, "readers", depth)

    def changes_outside(self, nodes: Iterable[ast.AST], at: Place) -> bool:
        """Return whether code may change files, or waits until others change them."""
        return any(self._calls_any(one, at, "outside", 0) for one in nodes)

    def _calls_any(self, node: ast.AST, at: Place, kind: str, depth: int) -> bool:
        for one in ast.walk(node):
            if not isinstance(one, ast.Call):
                continue
            called = self.called(one, at)
            if isinstance(called, str):
                if _fits(kind, called):
                    return True
            elif isinstance(called, Place):
                body = called.function.body
                if depth < _DEEPEST and any(
                    self._calls_any(inner, called, kind, depth + 1) for inner in body
                ):
                    return True
            elif root_name(one.func) and isinstance(one.func, ast.Attribute):
                is_found = one.func.attr in getattr(known().methods, kind)
                if is_found:
                    return True
        return False

    def is_loader(self, node: ast.AST | None, at: Place) -> bool:
        """Return whether an expression reads a file as it is, by a function of a library."""
        if not isinstance(node, ast.Call):
            return False
        called = self.called(node, at)
        if isinstance(called, str):
            return _fits("loaders", called)
        method = node.func
        return isinstance(method, ast.Attribute) and method.attr in known().methods.loaders


def _is_pure_name(name: str, call: ast.Call) -> bool:
    """Return whether a function of Python or of a library is pure."""
    if name == "open" or name.endswith((".ZipFile", "h5py.File", "lmdb.open", "tarfile.open")):
        return not _may_write(call)
    if "." not in name:
        return name in known().names.pure or name.endswith("Error")
    if name in _SEEDED:
        return bool(call.args) and isinstance(call.args[0], ast.Constant)
    return not _fits("impure", name) and _fits("pure", name)


def _may_write(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else None
    mode = next((word.value for word in call.keywords if word.arg == "mode"), mode)
    if mode is None:
        return False
    text = str(mode.value) if isinstance(mode, ast.Constant) else "w"
    return any(letter in text for letter in "wax+")


def _is_mutator(name: str) -> bool:
    """Return whether a method of an object of a library may change the object."""
    begins = ("add", "set", "insert", "remove", "update", "pop", "append", "extend", "clear", "fit")
    return name.startswith((*begins, "sort", "fill", "put", "resize")) or name.endswith("_")


def _is_view(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
    return name in known().methods.views or name in known().names.views


def is_cached(function: Function) -> bool:
    """Return whether the body of a function runs only once for the same arguments."""
    return any(name in _CACHES for name in _names_of_decorators(function))


def _names_of_decorators(function: Function) -> list[str]:
    decorators = getattr(function.node, "decorator_list", ())
    targets = [one.func if isinstance(one, ast.Call) else one for one in decorators]
    return [one.attr if isinstance(one, ast.Attribute) else root_name(one) for one in targets]


def _has_harmless_decorators(function: Function) -> bool:
    harmless = known().names.decorators | _CACHES
    return all(name in harmless for name in _names_of_decorators(function))


def _stored(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the parts of objects that a statement changes: `x.part = …`, `x[0] += …`."""
    return (
        one for one in _stored_or_named(node) if isinstance(one, (ast.Attribute, ast.Subscript))
    )


def _stored_or_named(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = _targets(node)
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


def _targets(
    node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor,
) -> list[ast.expr]:
    return list(node.targets) if isinstance(node, ast.Assign) else [node.target]


def _named_values(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
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
    return [(target, value) for target in _stored_or_named(node)]


def _begins(node: ast.AST, name: str) -> bool:
    """Return whether `x.part[0].other` begins with a name, such as `x` or `x.part`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
        if isinstance(node, ast.expr) and dotted_name(node) == name:
            return True
    return False


def _values_of_self(nodes: Iterable[ast.AST], name: str) -> list[ast.expr | None]:
    """Return the values that code gives to `self.name`."""
    return [
        value
        for node in nodes
        for target, value in _named_values(node)
        if dotted_name(target) == f"self.{name}"
    ]


def is_imported(name: str, function: Function) -> bool:
    """Return whether a name of a function is a module, or something from a module."""
    outer: Function | None = function
    while outer is not None:
        if name in outer.imports:
            return True
        if outer.binds(name):
            return False
        outer = outer.parent
    return False


def may_be_trained(value: ast.expr) -> bool:
    """Return whether an expression may make parameters, which an optimizer changes unseen."""
    return _TRAINED.search(ast.unparse(value)) is not None
