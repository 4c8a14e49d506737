"""Whether a function computes each element of an array only from a few neighbouring elements.

The right-hand side of a differential equation on a grid is such a function: most elements of its
Jacobian are zero. The source shows it by shifted parts of one array, such as
`u[2:] - 2 * u[1:-1] + u[:-2]`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Union

from teho.patterns import lazy_pattern
from teho.source.parsed import Function, root_name
from teho.source.program import Place, Program

__all__ = ["uses_only_neighbours"]

_OF_ONE_AXIS = lazy_pattern(
    r"(nan)?(sum|mean|max|min|prod|median|std|var)|average|a(max|min)|any|all"
)
"""Functions and methods that use all elements of an axis; without `axis`, all elements."""
_OF_ALL = lazy_pattern(
    r"v?dot|inner|outer|matmul|tensordot|einsum|trapz|trapezoid|simpson|cumsum|cumprod|cum\w*_\w+"
    r"|i?r?fft\w*|i?d[cs]t\w*|\w*solve\w*|norm|interp\w*|quantile|percentile|\w*convolve\w*"
    r"|correlate\w*|sort|argsort|searchsorted|lstsq|p?inv|\w*quad|[cp]dist|ptp|bincount|histogram"
    r"|unique|kron|UnivariateSpline|CubicSpline|cKDTree|KDTree|bmat"
)
"""Other functions and methods with which an element may depend on all elements."""
_SHIFTS = frozenset(("roll", "diff", "gradient", "laplace"))
_ONLY_SHAPE = frozenset(("shape", "size", "ndim", "dtype"))
_RESHAPES = frozenset(
    ("reshape", "split", "array_split", "hsplit", "vsplit", "concatenate", "stack", "vstack")
)
_SPARSE = lazy_pattern(r"scipy\.sparse\.(?!linalg)\w+")
_LARGEST_SHIFT = 8
_DEEPEST = 4


class _Seen:
    """How a function, and the functions that it calls, use the elements of the array."""

    def __init__(self) -> None:
        self.begins: dict[int, set[int]] = {}
        """Axis -> the elements at which parts of the array begin."""
        self.cut_axes: set[int] = set()
        """Axes in which a part ends before the last element."""
        self.is_shifted = False
        """Whether a function shifts the array in an axis that is not known."""
        self.shifted_axes: set[int] = set()
        self.reduced_axes: set[Union[int, None]] = set()
        """Axes of which all elements are used at once; None: perhaps all axes."""

    @property
    def is_local(self) -> bool:
        """Whether the elements are certainly computed from neighbours only."""
        pairs = {axis for axis in self.cut_axes if len(self.begins[axis]) > 1}
        shifted = pairs | self.shifted_axes
        if not shifted and not self.is_shifted:
            return False
        if not self.reduced_axes:
            return True
        is_known = not self.is_shifted and None not in self.reduced_axes
        return (
            is_known
            and not any((axis or 0) < 0 for axis in self.reduced_axes | shifted)
            and (self.reduced_axes.isdisjoint(shifted))
        )


def uses_only_neighbours(place: Place, param: str, program: Program) -> bool:
    """Return whether a function certainly uses only neighbouring elements of an array.

    Args:
        place: the function.
        param: the parameter with the array.
        program: the files of the program.
    """
    seen = _Seen()
    _Reader(place, frozenset((param,)), program, seen, 0).read()
    return seen.is_local


class _Reader:
    """Reads one function whose parameters have the array.

    Args:
        place: the function.
        params: the parameters with the array.
        program: the files of the program.
        seen: gets what the function does.
        depth: number of calls that led to this function.
    """

    def __init__(
        self, place: Place, params: frozenset[str], program: Program, seen: _Seen, depth: int
    ) -> None:
        self._place, self._params, self._program = place, params, program
        self._seen, self._depth = seen, depth
        self._arrays = set(params)
        """Names that have the array, a part of it, or values of its elements."""
        self._tables: set[str] = set()
        """Those whose items are arrays too: `u, v = state.reshape(2, n)`."""

    def read(self) -> None:
        """Note what the function does with the array."""
        nodes = self._place.function.nodes
        count = 0
        while count < len(self._arrays) + len(self._tables):
            count = len(self._arrays) + len(self._tables)
            for node in nodes:
                if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for target in targets:
                        self._bind(target, node.value)
        for node in nodes:
            match node:
                case ast.Subscript(value=array) if self._is_array(array):
                    self._of_part(node)
                case ast.BinOp(op=ast.MatMult(), left=left, right=right):
                    self._of_product(left, right)
                case ast.Call():
                    self._of_call(node)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            is_numbers = isinstance(value, ast.Name) and value.id in self._params - self._tables
            parts = [value] * (0 if is_numbers else len(target.elts))  # `a, b = state`: numbers
            if isinstance(value, (ast.Tuple, ast.List)):
                parts = value.elts
            for one, part in zip(target.elts, parts, strict=False):
                self._bind(one, part)
            return
        name = root_name(target)
        if name and self._is_array(value):
            self._arrays.add(name)
            if self._is_table(value):
                self._tables.add(name)

    def _is_table(self, value: ast.expr) -> bool:
        match value:
            case ast.Name(id=name):
                return name in self._tables
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                return name in _RESHAPES
            case ast.BinOp(left=left, right=right):
                return self._is_table(left) or self._is_table(right)
        return False

    def _is_array(self, node: ast.AST) -> bool:
        """Return whether an expression has an array of the unknowns, and not one number of it."""
        match node:
            case ast.Name(id=name):
                return name in self._arrays
            case ast.Attribute(value=value, attr=name):
                return name not in _ONLY_SHAPE and self._is_array(value)
            case ast.Subscript(value=value, slice=part):
                parts = part.elts if isinstance(part, ast.Tuple) else [part]
                is_part = any(isinstance(one, (ast.Slice, ast.Compare)) for one in parts)
                is_row = isinstance(part, (ast.Name, ast.BinOp)) or self._is_table(value)
                return self._is_array(value) and (is_part or is_row)
            case ast.Compare() | ast.Lambda():
                return False
        return any(map(self._is_array, ast.iter_child_nodes(node)))

    def _of_part(self, node: ast.Subscript) -> None:
        """Note a part that begins or ends beside the array: `u[2:]`, `u[:, :-1]`, `u[i - 1]`."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for axis, part in enumerate(parts):
            match part:
                case ast.Slice(lower=lower, upper=upper, step=None):
                    begin = 0 if lower is None else _number(lower)
                    end = 0 if upper is None else _number(upper)
                    if begin is None or end is None:
                        continue
                    if 0 <= begin <= _LARGEST_SHIFT and -_LARGEST_SHIFT <= end <= 0:
                        self._seen.begins.setdefault(axis, set()).add(begin)
                        if end < 0:
                            self._seen.cut_axes.add(axis)
                case ast.BinOp(
                    left=ast.Name(id=name), op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)
                ):
                    given = self._place.function.assigned.get(name, [])
                    if any(one.loop is not None for one in given):
                        self._seen.shifted_axes.add(axis)

    def _of_product(self, left: ast.expr, right: ast.expr) -> None:
        """Note a product with a matrix: an element may depend on all, if it is not sparse."""
        if not (self._is_array(left) or self._is_array(right)):
            return
        if self._is_sparse(left):
            self._seen.shifted_axes.add(0)
        else:
            self._seen.reduced_axes.add(None)

    def _is_sparse(self, node: ast.expr) -> bool:
        """Return whether a matrix was made by `scipy.sparse`."""
        if isinstance(node, ast.BinOp):
            return self._is_sparse(node.left) or self._is_sparse(node.right)
        if not isinstance(node, ast.Name):
            return False
        function: Union[Function, None] = self._place.function
        while function is not None and not function.knows(node.id):
            function = function.parent
        if function is None:
            return False
        at = Place(self._place.path, function)
        values = [one.value for one in function.assigned.get(node.id, []) if one.value is not None]
        return bool(values) and all(self._makes_sparse(value, at) for value in values)

    def _makes_sparse(self, value: ast.expr, at: Place) -> bool:
        calls = (one for one in ast.walk(value) if isinstance(one, ast.Call))
        names = (self._program.called(one, at) for one in calls)
        return any(isinstance(one, str) and _SPARSE.fullmatch(one) for one in names)

    def _of_call(self, call: ast.Call) -> None:
        called = self._program.called(call, self._place)
        if isinstance(called, Place):
            given = frozenset(self._given(call, called.function))
            if given and self._depth < _DEEPEST:
                _Reader(called, given, self._program, self._seen, self._depth + 1).read()
            elif given:
                self._seen.reduced_axes.add(None)
            return
        name = called.rpartition(".")[2] if isinstance(called, str) else ""
        arrays = call.args
        if isinstance(call.func, ast.Attribute) and not isinstance(called, str):
            name, arrays = call.func.attr, [call.func.value, *call.args]
        if not any(map(self._is_array, arrays)):
            return
        is_of_two = called in ("max", "min") and len(call.args) > 1
        axis = next((word.value for word in call.keywords if word.arg == "axis"), None)
        place = None if axis is None else _number(axis)
        if name in _SHIFTS:
            if place is None:
                self._seen.is_shifted = True
            else:
                self._seen.shifted_axes.add(place)
        elif _OF_ONE_AXIS.fullmatch(name) and not is_of_two:
            self._seen.reduced_axes.add(place)
        elif _OF_ALL.fullmatch(name) or not name:  # without a name, the function is not known
            self._seen.reduced_axes.add(None)

    def _given(self, call: ast.Call, called: Function) -> Iterator[str]:
        """Yield the parameters of a function of the program that get the array."""
        given = dict(zip(called.params_of_call, call.args, strict=False))
        given |= {word.arg: word.value for word in call.keywords if word.arg}
        return (name for name, value in given.items() if self._is_array(value))


def _number(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = _number(node.operand)
        return None if found is None else -found
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int else None
