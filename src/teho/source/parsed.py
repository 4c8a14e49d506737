"""The files of a program, parsed: their functions, loops and names."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Union

from teho.source.active import find_active, text_between

__all__ = [
    "COMPREHENSIONS",
    "Assigned",
    "Function",
    "Loop",
    "Parse",
    "SourceFile",
    "dotted_name",
    "parsed",
    "root_name",
]

_LONGEST_BYTES = 1 << 20
"""Larger files are generated, and parsing one takes a second."""
_Def = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Loop(NamedTuple):
    """A loop of a function: `for`, `while`, or the `for` of a comprehension."""

    node: ast.AST
    line: int
    first: int
    """First line of its body."""
    last: int
    iterable: ast.expr | None
    """None: it is a `while` loop."""

    @property
    def is_statement(self) -> bool:
        """Whether it is no comprehension."""
        return not isinstance(self.node, COMPREHENSIONS)


class Assigned(NamedTuple):
    """One place that gives a name a value."""

    line: int
    value: ast.expr | None
    """The expression; None: not known, such as `del` or an exception's name."""
    loop: Loop | None
    """The loop whose items the name gets; None: the name gets the value itself."""


class Function:
    """A function, a lambda, or a whole file.

    Args:
        node: its definition.
        parent: the function around it; None for a whole file.
        owner: the class of a method.
    """

    def __init__(
        self, node: _Def, parent: Function | None = None, owner: ast.ClassDef | None = None
    ) -> None:
        self.node, self.parent, self.owner = node, parent, owner
        self.name = getattr(node, "name", "")
        self.assigned: defaultdict[str, list[Assigned]] = defaultdict(list)
        self.loops: list[Loop] = []
        self.outer_names: set[str] = set()
        """Names that it declares `global` or `nonlocal`."""
        self.inner: dict[str, Function] = {}
        """Functions that it defines, by name; of a file also `Class.method`."""
        self.imports: dict[str, str] = {}
        """Name -> what it is: `np` -> `numpy`, `eigh` -> `scipy.linalg.eigh`."""
        self.classes: dict[str, ast.ClassDef] = {}

    @property
    def params(self) -> list[str]:
        """Names of its parameters, in the order of a call, then those that need a name."""
        if isinstance(self.node, ast.Module):
            return []
        given = self.node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        return [one.arg for one in (*every, given.vararg, given.kwarg) if one is not None]

    @property
    def params_of_call(self) -> list[str]:
        """Names of the parameters that a call gives values: not the `self` of a method."""
        params = self.params
        return params[1:] if self.owner is not None and params[:1] == ["self"] else params

    @property
    def body(self) -> list[ast.stmt] | list[ast.expr]:
        """Its statements; of a lambda its expression."""
        return [self.node.body] if isinstance(self.node, ast.Lambda) else self.node.body

    @property
    def module(self) -> Function:
        """The file around it."""
        return self if self.parent is None else self.parent.module

    def default(self, name: str) -> ast.expr | None:
        """Return the default value of a parameter; None if it has none."""
        if isinstance(self.node, ast.Module):
            return None
        given = self.node.args
        placed = [*given.posonlyargs, *given.args]
        with_default = placed[len(placed) - len(given.defaults) :]
        found = {one.arg: value for one, value in zip(with_default, given.defaults, strict=True)}
        named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        found |= {one.arg: value for one, value in named if value is not None}
        return found.get(name)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The nodes of its body, without those of functions and classes in it."""
        waiting: list[ast.AST] = list(self.body)
        found: list[ast.AST] = []
        while waiting:
            node = waiting.pop()
            found.append(node)
            if not isinstance(node, _SCOPES):
                waiting.extend(ast.iter_child_nodes(node))
        return tuple(found)

    def binds(self, name: str) -> bool:
        """Return whether a name is local here: a parameter, or one that gets a value."""
        is_given = name in self.assigned or name in self.params
        return is_given and name not in self.outer_names

    def knows(self, name: str) -> bool:
        """Return whether a name is defined here, in any way."""
        return (
            name in self.assigned
            or name in self.params
            or name in self.inner
            or name in self.classes
            or name in self.imports
        )

    def every(self) -> Iterator[Function]:
        """Yield this function and all functions in it."""
        yield self
        for function in self.inner.values():
            yield from function.every()

    def loops_at(self, line: int) -> list[Loop]:
        """Return the loops whose body has a line, the outermost first."""
        return [loop for loop in self.loops if loop.first <= line <= loop.last]


class SourceFile:
    """A parsed file.

    Args:
        text: its content.

    Raises:
        ValueError: it is no Python that this Python can parse, or too long.
        RecursionError: an expression is too deep.
    """

    def __init__(self, text: bytes) -> None:
        if len(text) > _LONGEST_BYTES:
            raise ValueError("too long")
        self.lines = text.split(b"\n")
        self._active: dict[tuple[int, str], ast.expr | None] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as `"\\s"`: they are about the user's program
            self.module = Function(ast.parse(text))
        self._functions: list[tuple[int, int, Function]] = []
        self._lambdas: list[Function] = []
        _Reader(self, self.module).read()
        self._functions.sort(key=lambda one: one[0])
        self._firsts = [first for first, _, _ in self._functions]

    def add(self, function: Function, first: int, last: int) -> None:
        """Add a function with its lines."""
        if isinstance(function.node, ast.Lambda):
            self._lambdas.append(function)
        else:
            self._functions.append((first, last, function))

    def function_at(self, line: int) -> Function:
        """Return the innermost function, but no lambda, that has a line."""
        for first, last, function in reversed(self._functions[: bisect_right(self._firsts, line)]):
            if first <= line <= last:
                return function
        return self.module

    def lambda_around(self, node: ast.expr) -> Function | None:
        """Return the innermost lambda function that has an expression."""
        around = [one for one in self._lambdas if node in ast.walk(one.node)]
        return around[-1] if around else None  # an outer one is added first

    def active(self, line: int, text: str) -> ast.expr | None:
        """Return the expression that a frame executes; None if it is not clear.

        Args:
            line: the frame's line.
            text: the expression's text, or the text of the whole line.
        """
        if (line, text) not in self._active:
            node = self.function_at(line).node
            self._active[line, text] = find_active(node, self.lines, line, text)
        return self._active[line, text]

    def changes_in_place(self, line: int, text: str) -> bool:
        """Return whether a frame executes a statement such as `x += f(y)`, as far as is known.

        Args:
            line: the frame's line.
            text: the expression's text, or the text of the whole line.
        """
        if "=" not in text:
            return False
        for one in self.function_at(line).nodes:
            if isinstance(one, ast.AugAssign) and one.lineno == line:
                whole, target = self.text_of(one), self.text_of(one.target)
                is_begin = whole.startswith(text) and len(text) > len(target)
                if is_begin or text.startswith(whole):
                    return True
        return False

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of an expression or a statement, as one line."""
        end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return text_between(self.lines, (node.lineno, node.col_offset), end)

    def line_text(self, line: int) -> str:
        """Return the text of a line."""
        return self.lines[line - 1].decode("utf-8", "replace").strip()


Parse = Callable[[bytes], Union[SourceFile, None]]


def parsed(text: bytes) -> SourceFile | None:
    """Return a parsed file; None if this Python cannot parse it, or it is too long."""
    try:
        return SourceFile(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def dotted_name(node: ast.AST) -> str:
    """Return `np.linalg.eigh` of a chain of names; empty if it is another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def root_name(node: ast.AST) -> str:
    """Return the name at the begin of `name.part[0].call()`; empty if it begins otherwise."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


class _Reader:
    """Reads the names and loops of one function, and the functions in it."""

    def __init__(self, file: SourceFile, function: Function) -> None:
        self._file, self._function = file, function

    def read(self) -> None:
        for node in self._function.body:
            self._read(node)

    def _read(self, node: ast.AST) -> None:
        function = self._function
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._add_function(node, None)
                return
            case ast.ClassDef():
                self._add_class(node)
                return
            case ast.Global() | ast.Nonlocal():
                function.outer_names.update(node.names)
            case ast.Import():
                for one in node.names:
                    name = one.asname or one.name.partition(".")[0]
                    function.imports[name] = one.name if one.asname else name
            case ast.ImportFrom():
                for one in node.names:
                    origin = "." * node.level + (node.module or "")
                    function.imports[one.asname or one.name] = f"{origin}.{one.name}"
            case ast.Assign():
                for target in node.targets:
                    self._bind(target, node.value)
            case ast.AnnAssign() | ast.NamedExpr():
                if node.value is not None:
                    self._bind(node.target, node.value)
            case ast.AugAssign():
                self._bind(node.target, None)
            case ast.For() | ast.AsyncFor():
                body = node.body
                loop = Loop(node, node.lineno, body[0].lineno, _last(body[-1]), node.iter)
                function.loops.append(loop)
                self._bind_items(node.target, node.iter, loop)
            case ast.While():
                loop = Loop(node, node.lineno, node.lineno, _last(node.body[-1]), None)
                function.loops.append(loop)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, item.context_expr)
            case ast.ExceptHandler():
                if node.name:
                    function.assigned[node.name].append(Assigned(node.lineno, None, None))
            case ast.MatchAs() | ast.MatchStar():
                if node.name:
                    function.assigned[node.name].append(Assigned(node.lineno, None, None))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for inner in node.generators:
                    loop = Loop(node, node.lineno, node.lineno, _last(node), inner.iter)
                    function.loops.append(loop)
                    self._bind_items(inner.target, inner.iter, loop)
        for child in ast.iter_child_nodes(node):
            self._read(child)

    def _bind_items(self, target: ast.AST, iterable: ast.expr, loop: Loop) -> None:
        """Bind the names of a loop: each name of `for a, b in zip(x, y)` to its own iterable."""
        parts: Sequence[ast.expr] = ()
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name):
            if iterable.func.id == "zip":
                parts = iterable.args
            elif iterable.func.id == "enumerate":
                parts = [iterable, *iterable.args[:1]]
        names = target.elts if isinstance(target, ast.Tuple) else []
        is_plain = not any(isinstance(one, ast.Starred) for one in (*names, *parts))
        if parts and len(parts) == len(names) and is_plain:
            for name, part in zip(names, parts, strict=True):
                self._bind(name, part, loop)
        else:
            self._bind(target, iterable, loop)

    def _bind(self, target: ast.AST, value: ast.expr | None, loop: Loop | None = None) -> None:
        if isinstance(target, ast.Name):
            line = getattr(target, "lineno", 0)
            self._function.assigned[target.id].append(Assigned(line, value, loop))
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, ast.Tuple) and loop is None else []
            is_plain = not any(isinstance(one, ast.Starred) for one in (*target.elts, *parts))
            is_each = len(parts) == len(target.elts) and is_plain  # `a, b = 1, 2`
            for number, one in enumerate(target.elts):
                self._bind(one, parts[number] if is_each else value, loop)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value, loop)

    def _add_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, owner: ast.ClassDef | None
    ) -> None:
        function = Function(node, self._function, owner)
        if not isinstance(node, ast.Lambda):
            name = f"{owner.name}.{node.name}" if owner else node.name
            self._function.inner[name] = function
        decorated = [one.lineno for one in getattr(node, "decorator_list", ())]
        self._file.add(function, min([node.lineno, *decorated]), _last(node))
        _Reader(self._file, function).read()
        # Default values are computed where the function is defined.
        for value in (*node.args.defaults, *node.args.kw_defaults):
            if value is not None:
                self._read(value)

    def _add_class(self, node: ast.ClassDef) -> None:
        self._function.classes[node.name] = node
        for one in node.body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._add_function(one, node)
            else:
                self._read_in_class(one)

    def _read_in_class(self, node: ast.AST) -> None:
        """Read loops and lambdas, but no names: those of a class body are its attributes."""
        if isinstance(node, ast.Lambda):
            self._add_function(node, None)
            return
        for child in ast.iter_child_nodes(node):
            self._read_in_class(child)


def _last(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", 0) or 0)
