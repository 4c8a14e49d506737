"""The files of a program, and what its calls call."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.source.known import (
    SEEDED,
    has_position,
    is_pure_name,
    is_stream,
    known,
    may_be_trained,
)
from teho.source.parsed import Function, SourceFile, dotted_name

__all__ = ["Place", "Program", "is_imported"]

_MODES = frozenset(("r", "rb", "rt", "rU", "r+", "rb+", "r+b", "w+b"))
"""Modes in which a file is read: `path.open("rb")`, but not `Image.open("photo.png")`."""


class Place(NamedTuple):
    """A function, and the file that it is in."""

    path: str
    function: Function


class Program:
    """The files of a program, each parsed once.

    Args:
        read: returns a parsed file by its path; None if it cannot be read.
    """

    def __init__(self, read: Callable[[str], SourceFile | None]) -> None:
        self._read = read
        self._files: dict[str, SourceFile | None] = {}
        self._called: dict[tuple[int, int], Place | ast.ClassDef | str | None] = {}
        self._parts: dict[int, tuple[ast.AST, ...]] = {}

    def file(self, path: str) -> SourceFile | None:
        """Return a parsed file; None if it cannot be read."""
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def all_nodes(self, parent: ast.AST, statements: Sequence[ast.AST]) -> tuple[ast.AST, ...]:
        """Return all nodes of the statements of a loop or function, always the same tuple."""
        if id(parent) not in self._parts:
            self._parts[id(parent)] = tuple(inner for one in statements for inner in ast.walk(one))
        return self._parts[id(parent)]

    def called(self, call: ast.Call, at: Place) -> Place | ast.ClassDef | str | None:
        """Return what a call calls.

        A function of the program, a class of the program, the dotted name of a function of a
        library or of Python, or None if it is not known.
        """
        key = id(call), id(at.function)  # a whole file does not know the functions in a function
        if key not in self._called:
            self._called[key] = self._find_called(call, at)
        return self._called[key]

    def _find_called(self, call: ast.Call, at: Place) -> Place | ast.ClassDef | str | None:
        target = call.func
        if isinstance(target, ast.Name):
            return self.named(target.id, at)
        if not isinstance(target, ast.Attribute):
            return None
        root, _, rest = dotted_name(target).partition(".")
        owner = at.function.owner
        if root == "self" and owner is not None and "." not in rest:
            return self._method(rest, at, owner.name)
        if root and is_imported(root, at.function):
            return self._imported(root, rest, at)
        return self._method(target.attr, at, "")

    def named(self, name: str, at: Place) -> Place | ast.ClassDef | str | None:
        """Return what a name refers to, as `called` does for a call."""
        function: Function | None = at.function
        while function is not None:
            if name in function.inner:
                return Place(at.path, function.inner[name])
            if name in function.classes:
                return function.classes[name]
            if name in function.imports:
                return self._imported(name, "", at)
            if function.binds(name):
                return self._other_name(name, Place(at.path, function))
            function = function.parent
        return name if hasattr(builtins, name) else None

    def _other_name(self, name: str, at: Place) -> Place | ast.ClassDef | str | None:
        """Return what a name refers to that is another name for something of a module.

        Args:
            name: such as `REAL` of `REAL = np.longdouble`.
            at: the function that gives the name its value.
        """
        given = at.function.assigned.get(name, [])
        if len(given) != 1 or name in at.function.params:
            return None
        root, _, rest = dotted_name(given[0].value).partition(".") if given[0].value else ("",) * 3
        is_plain = any(
            isinstance(one, ast.Assign)
            and one.value is given[0].value
            and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
            for one in at.function.nodes
        )
        is_other = is_plain and bool(rest) and is_imported(root, at.function)
        return self._imported(root, rest, at) if is_other else None

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

    def is_of_library(self, node: ast.expr, at: Place) -> bool:
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
        if not isinstance(called, str) or "." not in called or called in SEEDED:
            return False
        is_handle = has_position(called)
        return is_pure_name(called, value) and not (is_handle or may_be_trained(value))

    def makes_position(self, value: ast.expr | None, at: Place) -> bool:
        """Return whether an expression makes a file or an iterator, which has a position."""
        if isinstance(value, ast.GeneratorExp):
            return True
        if not isinstance(value, ast.Call):
            return False
        called = self.called(value, at)
        if isinstance(called, Place):
            return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in called.function.nodes)
        if isinstance(called, str):
            return is_stream(called)
        method, mode = value.func, value.args[0] if value.args else ast.Constant("r")
        is_open = isinstance(method, ast.Attribute) and method.attr == "open"
        return is_open and isinstance(mode, ast.Constant) and mode.value in _MODES


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
