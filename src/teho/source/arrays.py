"""The shapes of NumPy arrays, as far as the source shows them.

A line that works on a whole array calls native code for all elements at once. If the call is short,
its time counts as Python code. The advice to use NumPy does not fit such a line.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import NamedTuple, Union

from teho.patterns import lazy_pattern
from teho.source.changes import named_values
from teho.source.options.uses import name_of
from teho.source.parsed import Assigned, Function, dotted_name
from teho.source.program import Place, Program, is_imported
from teho.source.stack import Level, argument

__all__ = ["Shape", "Shapes", "elements"]

Shape = tuple[Union[int, None], ...]
"""Lengths of the axes; None: the length of an axis is not known. A number has no axes."""
_OPEN: Shape = (-1,)
"""The shape of a name that depends on itself: `chain = trial` says nothing new about `chain`."""
_DEEPEST = 12
_LARGE = 10**6
_MOST_PARTS = 1000
"""Parts of expressions that are looked at for one shape: a few milliseconds."""
_MAKERS = frozenset(("zeros", "ones", "empty", "full"))
_GENERATORS = {
    "random": 0, "standard_normal": 0, "permutation": 0, "rand": 0, "randn": 0, "poisson": 1,
    "exponential": 1, "standard_gamma": 1, "choice": 1, "gamma": 2, "normal": 2, "uniform": 2,
    "integers": 2, "randint": 2, "binomial": 2,
}  # fmt: skip
"""Methods of random generators, and the position of the size among their arguments."""
_RANDOM = lazy_pattern(r"(^|_)(rng|rs|random_state|gen|generator)$")
"""Names of attributes that usually are a generator of NumPy."""
_SAME = frozenset(
    (
        *("copy", "astype", "clip", "round", "cumsum", "cumprod", "conj", "abs", "exp", "log"),
        *("sqrt", "sin", "cos", "tan", "tanh", "arctan", "square", "sign", "floor", "ceil", "sort"),
        *("argsort", "zeros_like", "ones_like", "empty_like", "full_like", "asarray", "where"),
        *("ascontiguousarray", "minimum", "maximum", "add", "subtract", "multiply", "divide"),
        *("power", "arctan2", "hypot", "isnan", "isfinite", "logical_not", "logical_and", "roll"),
        *("flip", "real", "imag", "angle", "log1p", "log10", "expm1", "mod", "logical_or", "array"),
    )
)
"""Functions and methods whose result has the shape of their arguments together."""
_REDUCE = frozenset(
    (
        *("sum", "mean", "std", "var", "min", "max", "prod", "any", "all", "argmin", "argmax"),
        *("median", "ptp", "amin", "amax", "percentile", "quantile", "count_nonzero", "norm"),
    )
)


class _In(NamedTuple):
    """A function, and its level on the stack; None: it is not on the stack."""

    place: Place
    number: int | None

    @property
    def function(self) -> Function:
        return self.place.function


class Shapes:
    """Finds the shapes of the arrays of a stack.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files.
    """

    def __init__(self, levels: Sequence[Level], program: Program) -> None:
        self._levels, self._program = levels, program
        self._open: set[tuple[int, str]] = set()
        """Names that are being looked at."""
        self._left = _MOST_PARTS

    def of(self, number: int, node: ast.expr) -> Shape | None:
        """Return the shape of the value of an expression; None: it may be no array.

        Args:
            number: the level that executes the expression.
            node: the expression.
        """
        self._left = _MOST_PARTS
        return self._of(node, _In(self._levels[number].place, number), 0)

    def _of(self, node: ast.expr, at: _In, depth: int) -> Shape | None:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return None
        deeper = depth + 1
        match node:
            case ast.Constant(value=int() | float() | complex()):
                return ()
            case ast.Name(id=name):
                return self._of_name(name, at, deeper)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._of_attribute(name, at, deeper)
            case ast.Attribute(value=ast.Name() as value, attr=name) if self._owner(
                value, name, at
            ):
                return self._of_attribute(name, self._owner(value, name, at) or at, deeper)
            case ast.Attribute(value=inner, attr="T"):
                shape = self._of(inner, at, deeper)
                return shape[::-1] if shape is not None else None
            case ast.Attribute(value=inner, attr="real" | "imag"):
                return self._of(inner, at, deeper)
            case ast.Subscript(value=whole, slice=part):
                shape = self._of(whole, at, deeper)
                is_array = bool(shape) and shape != _OPEN
                return self._of_part(shape or (), part, at, deeper) if is_array else None
            case ast.BinOp(op=ast.MatMult()):
                return None
            case ast.BinOp(left=left, right=right):
                return _together([self._of(one, at, deeper) for one in (left, right)])
            case ast.Compare(left=left, comparators=[right]):
                return _together([self._of(one, at, deeper) for one in (left, right)])
            case ast.UnaryOp(operand=operand):
                return self._of(operand, at, deeper)
            case ast.Call():
                return self._of_call(node, at, deeper)
        return None

    def _of_name(self, name: str, at: _In, depth: int) -> Shape | None:
        function: Function | None = at.function
        while function is not None and not function.binds(name):
            function = function.parent
        if function is None:
            return None
        if function is not at.function:
            at = _In(Place(at.place.path, function), None)
        key = id(function.node), name
        if key in self._open:
            return _OPEN
        self._open.add(key)
        try:
            shapes = [self._of_value(one, at, depth) for one in function.assigned.get(name, [])]
            if name in function.params:
                number = at.number
                given = argument(self._levels, number, name) if number else None
                if given is None or not number:
                    return None
                before = _In(self._levels[number - 1].place, number - 1)
                shapes.append(self._of(given, before, depth))
            return _one_of(shapes)
        finally:
            self._open.discard(key)

    def _of_value(self, one: Assigned, at: _In, depth: int) -> Shape | None:
        if one.value is None:  # such as `x += 1`
            return _OPEN
        if one.loop is not None:
            return self._of_item(one.value, at, depth)
        return self._of(one.value, at, depth)

    def _of_item(self, iterable: ast.expr, at: _In, depth: int) -> Shape | None:
        if isinstance(iterable, ast.Call) and dotted_name(iterable.func) == "range":
            return ()
        shape = self._of(iterable, at, depth)
        return shape[1:] if shape and shape != _OPEN else None

    def _of_attribute(self, name: str, at: _In, depth: int) -> Shape | None:
        owner, module = at.function.owner, at.function.module
        key = id(module.node), f"self.{name}"
        if owner is None or key in self._open:
            return None
        self._open.add(key)
        try:
            shapes = [
                self._of(value, _In(Place(at.place.path, function), None), depth)
                for function in module.every()
                if function.owner is owner
                for node in function.nodes
                for target, value in named_values(node)
                if dotted_name(target) == f"self.{name}"
            ]
            return _one_of(shapes)
        finally:
            self._open.discard(key)

    def _owner(self, value: ast.Name, name: str, at: _In) -> _In | None:
        """Return a method of the only class of the file that gives `self.name` a value.

        Args:
            value: the object of `value.name`, which is no module and no array.
            name: the attribute.
            at: the function with this expression.
        """
        if is_imported(value.id, at.function) or self._left < 0:
            return None
        found = {
            id(one.owner): one
            for one in at.function.module.every()
            if one.owner is not None
            for node in one.nodes
            for target, _ in named_values(node)
            if dotted_name(target) == f"self.{name}"
        }
        only = next(iter(found.values())) if len(found) == 1 else None
        return _In(Place(at.place.path, only), None) if only is not None else None

    def _of_part(self, shape: Shape, part: ast.expr, at: _In, depth: int) -> Shape | None:
        """Return the shape of `x[part]`."""
        found: list[int | None] = []
        axes = list(shape)
        for one in part.elts if isinstance(part, ast.Tuple) else [part]:
            if isinstance(one, ast.Constant) and one.value is None:
                found.append(1)
                continue
            if not axes:
                return None
            axis = axes.pop(0)
            if isinstance(one, ast.Slice):
                # One end of unknown place: the part is about as long as the whole.
                has_ends = one.lower is not None and one.upper is not None
                found.append(None if has_ends else axis)
                continue
            inner = self._of(one, at, depth)
            if inner is None:
                return None
            found += inner
        return (*found, *axes)

    def _of_call(self, call: ast.Call, at: _In, depth: int) -> Shape | None:
        called = self._program.called(call, at.place)
        if isinstance(called, Place):
            returned = [
                self._of(one.value, _In(called, None), depth)
                for one in called.function.nodes
                if isinstance(one, ast.Return) and one.value is not None
            ]
            return _one_of(returned)
        name = name_of(call.func, at.place, self._program)
        _, _, last = name.rpartition(".")
        words = {word.arg: word.value for word in call.keywords if word.arg}
        if name.startswith("numpy.") and not name.startswith("numpy.random."):
            return self._of_numpy(last, call.args, words, at, depth)
        if last in _GENERATORS and self._is_generator(call, name, at):
            place = _GENERATORS[last]
            size = call.args[place] if len(call.args) > place else words.get("size")
            return self._sized(size, at, depth) if size is not None else ()
        if not name.startswith(".") or not isinstance(call.func, ast.Attribute):
            return () if name in {"len", "int", "float", "abs", "round"} else None
        shape = self._of(call.func.value, at, depth)
        if shape is None or shape == _OPEN:
            return shape if last in _SAME else None
        if last in _REDUCE:
            return _reduced(shape, words.get("axis") or (call.args[0] if call.args else None))
        if last in {"ravel", "flatten"}:
            return (math.prod(one or 1 for one in shape),)
        return shape if last in _SAME else None

    def _of_numpy(
        self,
        name: str,
        arguments: Sequence[ast.expr],
        words: dict[str, ast.expr],
        at: _In,
        depth: int,
    ) -> Shape | None:
        if not arguments:
            return None
        first = arguments[0]
        if name in _MAKERS:
            return self._sized(first, at, depth)
        if name == "arange":
            return (self._number(first, at, depth) if len(arguments) == 1 else None,)
        if name == "linspace":
            count = arguments[2] if len(arguments) > 2 else words.get("num")
            return (50 if count is None else self._number(count, at, depth),)
        if name == "bincount":
            least = words.get("minlength")
            return (self._number(least, at, depth) if least is not None else None,)
        if name in _REDUCE:
            shape = self._of(first, at, depth)
            axis = words.get("axis") or (arguments[1] if len(arguments) > 1 else None)
            return _reduced(shape, axis) if shape is not None and shape != _OPEN else None
        if name in _SAME:
            return _together([self._of(one, at, depth) for one in arguments])
        return None

    def _is_generator(self, call: ast.Call, name: str, at: _In) -> bool:
        """Return whether a method is one of a random generator of NumPy."""
        if name.startswith("numpy.random."):
            return True
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(receiver, ast.Attribute):  # such as `self.rng`
            return _RANDOM.search(receiver.attr) is not None
        if not isinstance(receiver, ast.Name):
            return False
        given = at.function.assigned.get(receiver.id, [])
        values = [one.value for one in given if isinstance(one.value, ast.Call)]
        names = [name_of(one.func, at.place, self._program) for one in values]
        return bool(names) and all(one.startswith("numpy.random.") for one in names)

    def _sized(self, size: ast.expr, at: _In, depth: int) -> Shape:
        """Return the shape of an array of a size: `3`, `n`, `(3, n)`."""
        parts = size.elts if isinstance(size, (ast.Tuple, ast.List)) else [size]
        return tuple(self._number(one, at, depth) for one in parts)

    def _number(self, node: ast.expr, at: _In, depth: int) -> int | None:
        """Return an integer, if the source has it."""
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.BinOp(left=left, op=op, right=right):
                numbers = [self._number(one, at, depth + 1) for one in (left, right)]
                first, second = numbers
                if first is None or second is None:
                    return None
                if isinstance(op, ast.Add):
                    return first + second
                if isinstance(op, ast.Sub):
                    return first - second
                if isinstance(op, ast.Mult):
                    return first * second
                if isinstance(op, ast.Pow):
                    return first**second if abs(first) < _LARGE and 0 <= second <= 3 else None
                return first // second if isinstance(op, ast.FloorDiv) and second else None
            case ast.Call(func=ast.Name(id="len"), args=[whole]):
                shape = self._of(whole, at, depth + 1)
                return shape[0] if shape and shape != _OPEN else None
            case ast.Name(id=name):
                function: Function | None = at.function
                while function is not None and not function.binds(name):
                    function = function.parent
                given = function.assigned.get(name, []) if function is not None else []
                if function is None or len(given) != 1 or given[0].loop is not None:
                    return None
                only = given[0].value
                inner = _In(Place(at.place.path, function), None)
                return self._number(only, inner, depth + 1) if only is not None else None
        return None


def elements(shape: Shape | None) -> int:
    """Return the number of elements that an array has at least, as far as the source shows it."""
    return math.prod(one or 1 for one in shape) if shape else 0


def _one_of(shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape of a name with several values; None: one of them may have no such shape."""
    closed = [one for one in shapes if one != _OPEN]
    known = [one for one in closed if one is not None]
    if not closed and shapes:
        return _OPEN
    if not known or len(known) < len(closed) or len(set(map(len, known))) > 1:
        return None
    lengths = (set(each) for each in zip(*known, strict=True))
    return tuple(each.pop() if len(each) == 1 else None for each in lengths)


def _together(shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape of a computation with several values, of which one may not be known."""
    known = [one for one in shapes if one and one != _OPEN]
    if not known and _OPEN in shapes:
        return _OPEN
    if not known:
        return () if all(one is not None for one in shapes) else None
    most = max(map(len, known))
    padded = [(1,) * (most - len(one)) + one for one in known]
    return tuple(map(_longest, zip(*padded, strict=True)))


def _longest(lengths: Sequence[int | None]) -> int | None:
    """Return the length of an axis of a computation: the others have the same length, or 1."""
    longest = max(one or 1 for one in lengths)
    return None if longest == 1 and None in lengths else longest


def _reduced(shape: Shape, axis: ast.expr | None) -> Shape | None:
    if axis is None:
        return ()
    if isinstance(axis, ast.UnaryOp) and isinstance(axis.operand, ast.Constant):
        axis = ast.Constant(ast.literal_eval(axis))
    value = axis.value if isinstance(axis, ast.Constant) else None
    if not isinstance(value, int) or not -len(shape) <= value < len(shape):
        return None
    place = value % len(shape)
    return (*shape[:place], *shape[place + 1 :])
