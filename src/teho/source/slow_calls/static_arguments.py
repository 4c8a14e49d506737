"""Finds static arguments of `jax.jit` that get another value in each iteration of a loop.

JAX compiles a function again for each new value of a static argument. A stack shows the call of the
compiled function; the source shows where the argument is static, that its value comes from the
loop, and that the function only computes with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.options.uses import name_of
from teho.source.parsed import Function, Loop, dotted_name
from teho.source.program import Place, Program
from teho.source.slow_calls.loop_parts import names_in
from teho.source.stack import Level

__all__ = ["find_static_argument"]

_JIT = "jax.jit"
_PARTIAL = "functools.partial"
_STATIC = frozenset(("static_argnames", "static_argnums"))
_ELEMENTWISE = lazy_pattern(
    r"(jax\.numpy|numpy|jnp)\.(sin|cos|tan|exp|log|log1p|expm1|sqrt|tanh|abs|square|power|maximum"
    r"|minimum|multiply|add|subtract|divide|where|clip|sign|float32|float64|asarray|array)"
)
"""Functions that need no number whose value is known when JAX compiles."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_FUNCTIONS = frozenset(("float", "cos", "sin", "exp", "log", "sqrt", "tanh", "float32", "float64"))
"""Functions that give different results for different numbers."""
_MAPS = lazy_pattern(r"jax\.(tree_util\.tree_map|tree\.map|tree_map|vmap)")
"""Functions of JAX that call a lambda function with arrays."""
_LEAST_VALUES = 5
_DEEPEST = 4


class _Static(NamedTuple):
    """The static arguments of a function of the program."""

    option: ast.keyword
    at: Place
    """The function that has the option."""
    names: Sequence[str]
    function: Place


def find_static_argument(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the static argument on a stack that a loop changes; None: there is none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files.
    """
    for level in levels:
        call = level.node
        static = _static(call, level.place, program) if isinstance(call, ast.Call) else None
        if static is None or not isinstance(call, ast.Call):
            continue
        given = dict(zip(static.function.function.params_of_call, call.args, strict=False))
        given |= {word.arg: word.value for word in call.keywords if word.arg}
        for name in static.names:
            value = given.get(name)
            if value is None or not _changes(value, level):
                continue
            if not _only_computes(name, static.function, frozenset(static.names), program, 0):
                continue
            path, option = static.at.path, static.option
            file = program.file(path)
            if file is None:
                return None
            function, text = static.function.function.name, file.text_of(option.value)
            return CostlyOption(
                name="static_argument_changes",
                at=Frame(path, function, option.lineno, f"{option.arg}={text}"),
                lines=(level.frame,),
                words={"argument": name, "function": function, "called": level.frame.short_place},
            )
    return None


def _static(call: ast.Call, at: Place, program: Program) -> Union[_Static, None]:
    """Return the static arguments of the function that a call calls; None: it has none."""
    called = program.called(call, at)
    if isinstance(called, Place):
        for one in getattr(called.function.node, "decorator_list", ()):
            if isinstance(one, ast.Call) and _is_jit(one, at, program):
                return _of_jit(one, at, called)
        return None
    if not isinstance(call.func, ast.Name):
        return None
    outer: Function | None = at.function
    while outer is not None and not outer.binds(call.func.id):
        outer = outer.parent
    given = outer.assigned.get(call.func.id, []) if outer is not None else []
    made = given[0].value if len(given) == 1 and given[0].loop is None else None
    if outer is None or not isinstance(made, ast.Call):
        return None
    place = Place(at.path, outer)
    if not _is_jit(made, place, program) or not made.args or not isinstance(made.args[0], ast.Name):
        return None
    function = program.named(made.args[0].id, place)
    return _of_jit(made, place, function) if isinstance(function, Place) else None


def _is_jit(call: ast.Call, at: Place, program: Program) -> bool:
    name = name_of(call.func, at, program)
    if name == _PARTIAL and call.args:
        name = name_of(call.args[0], at, program)
    return name == _JIT


def _of_jit(call: ast.Call, at: Place, function: Place) -> Union[_Static, None]:
    option = next((word for word in call.keywords if word.arg in _STATIC), None)
    if option is None or function.function.owner is not None:
        return None
    try:
        value = ast.literal_eval(option.value)
    except ValueError:
        return None
    values = value if isinstance(value, (tuple, list)) else (value,)
    params = function.function.params
    names = [
        params[one] if isinstance(one, int) and one < len(params) else str(one) for one in values
    ]
    return _Static(option, at, names, function)


# ---- the loop ----


def _changes(value: ast.expr, level: Level) -> bool:
    """Return whether a value is made of the items of a loop with several iterations."""
    for loop in level.loops():
        if may_iterate(loop, level.function, _LEAST_VALUES) and _is_new(value, loop, level, 0):
            return True
    return False


def _is_new(value: ast.expr, loop: Loop, level: Level, depth: int) -> bool:
    """Return whether a value is another one in each iteration of a loop.

    Args:
        value: the value.
        loop: the loop.
        level: the function with the loop.
        depth: number of names that led to this value.
    """
    for name in names_in(value):
        given = level.function.assigned.get(name, [])
        if given and all(one.loop is loop for one in given):
            return True
        if len(given) != 1 or given[0].loop is not None or depth > _DEEPEST:
            continue
        made = given[0].value  # such as `0.1 * 0.9 ** epoch`
        if made is not None and _has_many_values(made) and _is_new(made, loop, level, depth + 1):
            return True
    return False


def _has_many_values(made: ast.expr) -> bool:
    """Return whether an expression certainly gives different numbers for different numbers.

    `0.1 if epoch < 30 else 0.01`, `epoch // 10` and `min(epoch, 5)` give few numbers.
    """
    match made:
        case ast.Name() | ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _has_many_values(operand)
        case ast.BinOp(left=left, op=operator, right=right):
            is_plain = isinstance(operator, _OPERATORS)
            return is_plain and _has_many_values(left) and _has_many_values(right)
        case ast.Call(func=function, args=[argument], keywords=[]):
            name = dotted_name(function).rpartition(".")[2]
            return name in _FUNCTIONS and _has_many_values(argument)
    return False


# ---- the function ----


def _only_computes(
    name: str, place: Place, static: frozenset[str], program: Program, depth: int
) -> bool:
    """Return whether a function only computes with an argument, and does not need its value.

    JAX needs the value of a number that is the length of an array, or that a condition of Python
    depends on.
    """
    if depth > _DEEPEST or not isinstance(place.function.node, ast.FunctionDef):
        return False
    body = place.function.node.body
    parents = {
        inner: outer for one in body for outer in ast.walk(one)
        for inner in ast.iter_child_nodes(outer)
    }  # fmt: skip
    uses = [
        node
        for one in body
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and node.id == name
    ]
    return bool(uses) and all(
        _is_computed(node, parents, place, static, program, depth) for node in uses
    )


def _is_computed(
    node: ast.AST,
    parents: dict[ast.AST, ast.AST],
    place: Place,
    static: frozenset[str],
    program: Program,
    depth: int,
) -> bool:
    """Return whether one use of an argument is an operation with an array."""
    outer = parents.get(node)
    if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, (ast.USub, ast.UAdd)):
        return _is_computed(outer, parents, place, static, program, depth)
    if isinstance(outer, ast.BinOp):
        other = outer.right if outer.left is node else outer.left
        if _may_be_array(other, place, static) or names_in(other) & _mapped(
            outer, parents, place, program
        ):
            return True
        return _is_computed(outer, parents, place, static, program, depth)
    call = parents.get(outer) if isinstance(outer, ast.keyword) else outer
    if not isinstance(call, ast.Call) or node is call.func:
        return False
    called = program.called(call, place)
    if isinstance(called, Place):
        return any(
            _only_computes(param, called, static, program, depth + 1)
            for param, value in _given(call, called.function)
            if value is node
        )
    return _ELEMENTWISE.fullmatch(name_of(call.func, place, program)) is not None


def _given(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    yield from zip(function.params_of_call, call.args, strict=False)
    yield from ((word.arg, word.value) for word in call.keywords if word.arg)


def _may_be_array(node: ast.expr, place: Place, static: frozenset[str]) -> bool:
    """Return whether an operand is made of an argument that is not static."""
    function: Function | None = place.function
    arrays: set[str] = set()
    while function is not None:
        arrays |= set(function.params) - static
        function = function.parent
    return bool(names_in(node) & arrays)


def _mapped(
    node: ast.AST, parents: dict[ast.AST, ast.AST], place: Place, program: Program
) -> set[str]:
    """Return the parameters of the lambda functions around an expression that get arrays."""
    found: set[str] = set()
    while (outer := parents.get(node)) is not None:
        if isinstance(node, ast.Lambda) and isinstance(outer, ast.Call):
            is_first = outer.args[:1] == [node]
            if is_first and _MAPS.fullmatch(name_of(outer.func, place, program)):
                found.update(one.arg for one in node.args.args)
        node = outer
    return found
