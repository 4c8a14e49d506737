"""Finds numbers that make TensorFlow trace a function again for each value.

TensorFlow traces a `tf.function` once for each shape and type of its tensors. A number of Python is
a part of the traced graph, so each new number needs a new trace. A tensor of this number does not.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, dotted_name, root_name
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import imported_name, names_in
from teho.source.stack import Level

__all__ = ["find_float_argument"]

_TRACED = ("tensorflow.function", "tf.function")
_WHOLE = frozenset(("floor", "ceil", "trunc", "comb", "perm", "factorial", "gcd", "lcm", "isqrt"))
"""Functions of `math` that return whole numbers."""
_DOUBLES = frozenset(("float64", "set_floatx", "double"))
_LEAST_ITERATIONS = 5
_DEEPEST = 6


def find_float_argument(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call of a `tf.function` on a stack that gets another number each time.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for level in levels:
        call = level.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        if not _is_traced(call.func.id, level) or _uses_doubles(level.function):
            continue
        loop = next((one for one in reversed(level.loops()) if one.is_statement), None)
        if loop is None or not may_iterate(loop, level.function, _LEAST_ITERATIONS):
            continue
        values = [*call.args, *(word.value for word in call.keywords if word.arg)]
        numbers = [one for one in values if _changes(one, level, purity)]
        if len(numbers) == 1:
            return _found(call, numbers[0], level)
    return None


def _is_traced(name: str, level: Level) -> bool:
    """Return whether a name is a function that `tf.function` traces, without a signature."""
    outer: Function | None = level.function
    while outer is not None and not outer.knows(name):
        outer = outer.parent
    if outer is None:
        return False
    if name in outer.inner:
        decorators = getattr(outer.inner[name].node, "decorator_list", [])
        return len(decorators) == 1 and _is_function(decorators[0], outer)
    given = outer.assigned.get(name, [])
    value = given[0].value if len(given) == 1 and given[0].loop is None else None
    return isinstance(value, ast.Call) and bool(value.args) and _is_function(value, outer)


def _is_function(node: ast.expr, function: Function) -> bool:
    if isinstance(node, ast.Call):
        words = {word.arg for word in node.keywords}
        return not words & {"input_signature", "reduce_retracing"} and _is_function(
            node.func, function
        )
    name = dotted_name(node)
    root, _, rest = name.partition(".")
    whole = function.module.imports.get(root, function.imports.get(root, root))
    return ".".join(filter(None, (whole, rest))) in _TRACED


def _uses_doubles(function: Function) -> bool:
    """Return whether a file computes with 64-bit numbers: a tensor of 32 bits would not fit."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _DOUBLES)
        or (isinstance(node, ast.Constant) and node.value in ("float64", "mixed_float16"))
        for node in ast.walk(function.module.node)
    )


def _changes(node: ast.expr, level: Level, purity: Purity) -> bool:
    """Return whether an argument is certainly a float of Python, and differs between calls."""
    numbers = _Numbers(level, purity)
    return numbers.is_float(node, level.function, 0) and any(
        _changes_in(name, loop, level.function) for name in names_in(node) for loop in level.loops()
    )


def _changes_in(name: str, loop: Loop, function: Function, depth: int = 0) -> bool:
    """Return whether a name has another value in each iteration of a loop."""
    if depth >= _DEEPEST:
        return False
    inside = [one for one in function.assigned.get(name, ()) if loop.first <= one.line <= loop.last]
    items = [one for one in function.assigned.get(name, ()) if one.loop == loop]
    if items or any(one.value is None or one.loop is not None for one in inside):
        return True  # an item of a loop, or a name to which the loop adds something
    return any(
        _changes_in(other, loop, function, depth + 1)
        for one in inside
        if one.value is not None
        for other in names_in(one.value) - {name}
    )


class _Numbers:
    """Finds out whether expressions are numbers of Python.

    Args:
        level: the function with the call.
        purity: the program.
    """

    def __init__(self, level: Level, purity: Purity) -> None:
        self._level, self._program = level, purity.program

    def is_float(self, node: ast.expr, function: Function, depth: int) -> bool:
        """Return whether an expression is certainly a float."""
        match node:
            case ast.Constant(value=float()):
                return True
            case ast.UnaryOp(operand=operand):
                return self.is_float(operand, function, depth)
            case ast.BinOp(left=left, op=op, right=right):
                both = self.is_number(left, function, depth) and self.is_number(
                    right, function, depth
                )
                return both and (
                    isinstance(op, ast.Div)
                    or self.is_float(left, function, depth)
                    or self.is_float(right, function, depth)
                )
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_float(body, function, depth) and self.is_float(
                    orelse, function, depth
                )
            case ast.Call(func=func):
                return self._returns_float(func)
            case ast.Name(id=name) if depth < _DEEPEST:
                values = self._values(name, function)
                return bool(values) and all(
                    self.is_float(value, function, depth + 1) for value in values
                )
        return False

    def is_number(self, node: ast.expr, function: Function, depth: int) -> bool:
        """Return whether an expression is certainly a number of Python."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, (int, float))
            case ast.UnaryOp(operand=operand):
                return self.is_number(operand, function, depth)
            case ast.BinOp(left=left, right=right):
                return self.is_number(left, function, depth) and self.is_number(
                    right, function, depth
                )
            case ast.Call(func=ast.Name(id="int" | "len" | "round")):
                return True
            case ast.Name(id=name) if depth < _DEEPEST:
                if self._is_counter(name, function):
                    return True
                values = self._values(name, function)
                return bool(values) and all(
                    self.is_number(value, function, depth + 1) for value in values
                )
        return self.is_float(node, function, depth)

    def _returns_float(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name) and function.id == "float":
            return True
        called = self._program.called(ast.Call(function, [], []), self._level.place)
        module, _, name = called.rpartition(".") if isinstance(called, str) else ("", "", "")
        return module == "math" and name not in _WHOLE

    @staticmethod
    def _values(name: str, function: Function) -> list[ast.expr]:
        """Return all values of a name; empty if one of them is not known."""
        outer: Function | None = function
        while outer is not None and not outer.knows(name):
            outer = outer.parent
        if outer is None or name in outer.params:
            return []
        added = [
            node.value
            for node in outer.nodes
            if isinstance(node, ast.AugAssign) and root_name(node.target) == name
        ]
        given = outer.assigned.get(name, [])
        known = [one.value for one in given if one.value is not None and one.loop is None]
        return [*known, *added] if len(known) + len(added) == len(given) else []

    @staticmethod
    def _is_counter(name: str, function: Function) -> bool:
        """Return whether a name only counts the iterations of loops."""
        given = function.assigned.get(name, [])
        return bool(given) and all(_counts(one.loop, name) for one in given)


def _counts(loop: Loop | None, name: str) -> bool:
    """Return whether a name is the number of an iteration of a loop."""
    target = getattr(loop.node, "target", None) if loop is not None else None
    match loop.iterable if loop is not None else None:
        case ast.Call(func=ast.Name(id="range")):
            return isinstance(target, ast.Name)
        case ast.Call(func=ast.Name(id="enumerate")):
            return (
                isinstance(target, ast.Tuple)
                and isinstance(target.elts[0], ast.Name)
                and target.elts[0].id == name
            )
    return False


def _found(call: ast.Call, number: ast.expr, level: Level) -> CostlyOption:
    frame = level.frame
    tensorflow = imported_name("tensorflow", level.function, "tf")
    old = level.file.text_of(number)
    return CostlyOption(
        name="traced_for_each_number",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "line": str(number.lineno),
            "function": ast.unparse(call.func),
            "old": old,
            "new": f"{tensorflow}.constant({old}, {tensorflow}.float32)",
        },
    )
