"""Which arrays of a program have numbers of a slow type, such as `float16`.

The type of an array follows from the calls that make it, through names, arguments, results of the
program's functions, and attributes of `self`. If one of these is not known, the type is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.options.uses import assigned_value, name_of, value_text
from teho.source.parsed import Function, SourceFile
from teho.source.program import Place, Program

__all__ = ["NumberTypes", "Origin"]

_MAKERS = {
    "zeros": 1, "ones": 1, "empty": 1, "full": 2, "array": 1, "asarray": 1, "arange": 3,
    "ascontiguousarray": 1, "zeros_like": 1, "ones_like": 1, "empty_like": 1, "full_like": 2,
}  # fmt: skip
"""Functions of NumPy that make an array, and the position of the type among their arguments."""
_DEEPEST = 12
_MOST = 5000
"""Number of values that are examined for one line; others are not known."""


class Origin(NamedTuple):
    """The place where the program chooses a type."""

    path: str
    line: int
    text: str


_ASSUMED = Origin("", 0, "")
"""Stands for the type of a value that depends on itself, as long as nothing speaks against it."""


class NumberTypes:
    """Finds arrays whose numbers have one type.

    Args:
        pattern: matches the name of the type, such as `numpy.float16`.
        files: the files of the program, by their paths.
        program: the same files.
    """

    same_type = frozenset(
        (
            *("copy", "reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "take"),
            *("repeat", "round", "diagonal", "cumsum", "cumprod", "sort"),
        )
    )
    """Methods whose result has the type of their array, and that compute little with it."""
    computing = frozenset(
        ("mean", "std", "var", "sum", "prod", "min", "max", "dot", "trace", "ptp", "clip")
    )
    """Methods that compute with the numbers of their array; their result has the same type."""
    same_type_functions = lazy_pattern(
        r"numpy\.(abs|exp|log|log10|sin|cos|tan|tanh|median|percentile|quantile|where|roll|pad"
        r"|cumsum|concatenate|stack|vstack|hstack)"
    )
    computing_functions = lazy_pattern(
        r"numpy\.(mean|std|var|sum|prod|min|max|amin|amax|average|sqrt|square|add|subtract"
        r"|multiply|divide|power|maximum|minimum|clip|dot|matmul|inner|outer|einsum|tensordot"
        r"|convolve|diff|gradient)"
    )
    """In small programs (NumPy 2.4, a processor without 16-bit arithmetic), these took 7 to 50
    times as long with `float16` as with `float32`. The functions above took at most twice as
    long."""
    follows_loops = False
    """Whether a value that depends on itself, `x = x @ y` in a loop, may have the type. If not, its
    type is not known. Only for types that a result has only if all of its arrays have them."""

    def __init__(self, pattern: str, files: dict[str, SourceFile], program: Program) -> None:
        self._pattern = re.compile(pattern)
        self._files, self._program = files, program
        self._known: dict[tuple[int, str], Origin | None] = {}
        self._open: set[tuple[int, str]] = set()
        """Values that are being examined."""
        self._assumed: set[tuple[int, str]] = set()
        """Open values that other results assume to have the type."""
        self._examined = 0
        self._calls: dict[int, list[tuple[ast.Call, Place]]] | None = None

    def computed_with(self, node: ast.AST, place: Place) -> Origin | None:
        """Return where the type of the numbers comes from with which code computes.

        None: the code does not compute with this type, or the types are not known.
        """
        self._examined = 0
        for one in self._operands(node, place):
            found = self._of(one, place, 0)
            if found is not None:
                return found
        return None

    def _operands(self, node: ast.AST, place: Place) -> Iterator[ast.expr]:
        """Yield arrays with whose numbers code computes."""
        match node:
            case ast.BinOp():
                if self._of(node, place, 0) is not None:
                    yield from (node.left, node.right)
            case ast.AugAssign():
                yield node.target
            case ast.Compare():
                yield node.left
            case ast.Call(keywords=words) if any(word.arg == "dtype" for word in words):
                return  # it computes with another type
            case ast.Call(func=ast.Attribute(value=array, attr=method)) if method in self.computing:
                yield array
            case ast.Call() if self._computes(node, place):
                yield from node.args

    def _computes(self, call: ast.Call, place: Place) -> bool:
        """Return whether a function of NumPy computes with arrays that all have this type."""
        name = name_of(call.func, place, self._program)
        is_computing = self.computing_functions.fullmatch(name) is not None
        return is_computing and self._of_arguments(call.args, place, 0) is not None

    def _of(self, node: ast.expr | None, place: Place, depth: int) -> Origin | None:
        if node is None or depth > _DEEPEST or self._examined > _MOST:
            return None
        key = id(node), place.path
        if key in self._known:
            return self._known[key]
        if key in self._open:  # a value that depends on itself
            self._assumed.add(key)
            return _ASSUMED if self.follows_loops else None
        self._open.add(key)
        self._examined += 1
        found = self._find(node, place, depth + 1)
        self._open.discard(key)
        self._assumed.discard(key)
        if found is _ASSUMED and not self._assumed:
            found = None  # it depends on nothing else
        if not (self.follows_loops and self._assumed):  # else the result is not sure yet
            self._known[key] = found
        return found

    def _find(self, node: ast.expr, place: Place, depth: int) -> Origin | None:
        match node:
            case ast.Name():
                return self._of_name(node.id, place, depth)
            case ast.Attribute(value=ast.Name(id="self")):
                return self._of_attribute(node.attr, place, depth)
            case ast.Attribute(attr="T" | "real" | "imag" | "flat"):
                return self._of(node.value, place, depth)
            case ast.Subscript():
                return self._of(node.value, place, depth)
            case ast.UnaryOp():
                return self._of(node.operand, place, depth)
            case ast.BinOp():
                return self._of_arguments((node.left, node.right), place, depth)
            case ast.IfExp():
                return self._of_all([(node.body, place), (node.orelse, place)], depth)
            case ast.Call():
                return self._of_call(node, place, depth)
        return None

    def _of_call(self, call: ast.Call, place: Place, depth: int) -> Origin | None:
        called = self._program.called(call, place)
        if isinstance(called, Place):
            returned = [
                (node.value, called)
                for node in called.function.nodes
                if isinstance(node, ast.Return) and node.value is not None
            ]
            return self._of_all(returned, depth)
        name = name_of(call.func, place, self._program)
        if self._pattern.fullmatch(value_text(call.func, place, self._program)):
            return self._origin(call.func, place)  # `np.float16(7)`
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        position = 0 if method == "astype" else None
        if name.startswith("numpy."):
            position = _MAKERS.get(name.removeprefix("numpy."))
        given = call.args[position] if position is not None and len(call.args) > position else None
        given = next((word.value for word in call.keywords if word.arg == "dtype"), given)
        if given is not None or method == "astype":
            return self._origin(given, place) if given is not None else None
        if name.startswith("."):
            is_same = method in self.same_type or method in self.computing
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            return self._of(receiver, place, depth) if is_same else None
        if any(word.arg == "out" for word in call.keywords):
            return None
        patterns = self.same_type_functions, self.computing_functions
        if any(one.fullmatch(name) for one in patterns) or name.endswith("_like"):
            return self._of_arguments(call.args, place, depth)
        return None

    def _of_arguments(
        self, arguments: Sequence[ast.expr], place: Place, depth: int
    ) -> Origin | None:
        """Return the type of a computation: numbers in the source do not change it."""
        arrays = [(one, place) for one in arguments if not self._is_number(one, place)]
        return self._of_all(arrays, depth)

    def _is_number(self, node: ast.expr, place: Place) -> bool:
        """Return whether a value is a number of Python, or several ones."""
        if isinstance(node, ast.UnaryOp):
            return self._is_number(node.operand, place)
        if isinstance(node, ast.Tuple):
            return all(self._is_number(one, place) for one in node.elts)
        if isinstance(node, ast.Name):
            found = assigned_value(node.id, place.function)
            return found is not None and self._is_number(found[0], Place(place.path, found[1]))
        return isinstance(node, ast.Constant)

    def _of_all(self, values: Sequence[tuple[ast.expr, Place]], depth: int) -> Origin | None:
        """Return the type of several values; None if one of them may have another type."""
        found = [self._of(value, place, depth) for value, place in values]
        if not found or any(one is None for one in found):
            return None
        return next((one for one in found if one is not _ASSUMED), _ASSUMED)

    def _origin(self, given: ast.expr, place: Place) -> Origin | None:
        if not self._pattern.fullmatch(value_text(given, place, self._program)):
            return None
        node: ast.expr = given
        if isinstance(given, ast.Name):
            found = assigned_value(given.id, place.function)
            node = found[0] if found is not None else given
        file = self._files[place.path]
        text = file.line_text(node.lineno) if node is not given else f"dtype={ast.unparse(node)}"
        return Origin(place.path, node.lineno, text)

    def _of_name(self, name: str, place: Place, depth: int) -> Origin | None:
        function: Function | None = place.function
        while function is not None and not function.knows(name):
            function = function.parent
        if function is None:
            return None
        at = Place(place.path, function)
        given = function.assigned.get(name, [])
        values: list[tuple[ast.expr, Place]] = []
        for one in given:
            if one.value is not None:
                values += self._results(name, one.value, at)
        known = sum(one.value is not None for one in given)
        if known + self._changes(name, function) < len(given) or len(values) < known:
            return None
        if name in function.params:
            passed = self._passed(name, function)
            return self._of_all([*passed, *values], depth) if passed else None
        return self._of_all(values, depth)

    def _results(
        self, name: str, value: ast.expr, place: Place
    ) -> Sequence[tuple[ast.expr, Place]]:
        """Return what a name gets of a value: of `a, b = f()`, each result of the function."""
        called = self._program.called(value, place) if isinstance(value, ast.Call) else None
        if not isinstance(called, Place):
            return [(value, place)]
        number = _number_of(name, value, place.function)
        if number is None:
            return [(value, place)]
        results = [one.value for one in called.function.nodes if isinstance(one, ast.Return)]
        items = [one.elts for one in results if isinstance(one, ast.Tuple)]
        if len(items) < len(results) or any(len(one) <= number for one in items):
            return []
        return [(one[number], called) for one in items]

    def _changes(self, name: str, function: Function) -> int:
        """Return how often the function changes an array in its place: the type stays."""
        return sum(
            isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == name
            for node in function.nodes
        )

    def _passed(self, name: str, function: Function) -> list[tuple[ast.expr, Place]]:
        """Return what the program gives a parameter, in all calls of a function."""
        params = function.params_of_call
        if name not in params:
            return []
        place, found = params.index(name), []
        for call, at in self._calls_of(function):
            word = next((word.value for word in call.keywords if word.arg == name), None)
            given = word or (call.args[place] if len(call.args) > place else None)
            if given is None or isinstance(given, ast.Starred):
                return []
            found.append((given, at))
        return found

    def _calls_of(self, function: Function) -> list[tuple[ast.Call, Place]]:
        if self._calls is None:
            self._calls = {}
            for path, file in self._files.items():
                for node in ast.walk(file.module.node):
                    if isinstance(node, ast.Call):
                        at = Place(path, file.function_at(node.lineno))
                        called = self._program.called(node, at)
                        if isinstance(called, Place):
                            self._calls.setdefault(id(called.function.node), []).append((node, at))
        return self._calls.get(id(function.node), [])

    def _of_attribute(self, name: str, place: Place, depth: int) -> Origin | None:
        """Return the type of `self.name`, which the methods of the class give a value."""
        owner = place.function.owner
        if owner is None:
            return None
        values: list[tuple[ast.expr, Place]] = []
        for function in place.function.module.every():
            if function.owner is owner:
                values += [(one, Place(place.path, function)) for one in _given(name, function)]
        return self._of_all(values, depth)


def _given(name: str, function: Function) -> Iterator[ast.expr]:
    for node in function.nodes:
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Attribute) and one.attr == name for one in node.targets
        ):
            yield node.value


def _number_of(name: str, value: ast.expr, function: Function) -> int | None:
    """Return which item of a value a name gets: 1 of `a, name = f()`; None: the value itself."""
    for node in function.nodes:
        if isinstance(node, ast.Assign) and node.value is value:
            for target in node.targets:
                names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
                for number, one in enumerate(names):
                    if isinstance(one, ast.Name) and one.id == name:
                        return number
    return None
