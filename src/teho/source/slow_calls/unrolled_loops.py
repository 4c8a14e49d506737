"""Finds Python loops that `jax.jit` unrolls: JAX compiles each pass of the loop.

`for t in range(n): h = cell(h, x[:, t])` inside a jitted function becomes a program of n parts, and
the time for compiling it grows faster than n. `jax.lax.scan` compiles one pass.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import length
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, Loop, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import imported_name, loads_of, names_in
from teho.source.stack import Level

__all__ = ["find_unrolled_loop"]

_JIT = lazy_pattern(r"/jax/_src/pjit\.py$")
_JITTED = lazy_pattern(r"\b(jit|pmap|filter_jit)\b")
_MOST_FUNCTIONS = 50
_LEAST = 16
"""Fewer passes are often the layers of a model."""
_MANY = lazy_pattern(r"\.shape\[|\blen\(|(?i:step|time|iter|horizon|seq)|^[TN]$")
"""Numbers of passes that are no number of layers, if the source does not say how many."""
_NAMES = ("one_pass", "one_step", "advance")
_NUMBERS = (ast.JoinedStr, ast.IfExp, ast.Slice, ast.Compare, ast.Lambda, ast.Starred)
"""Parts of code that need the number of the pass as a number of Python."""
_FUNCTIONS = frozenset(("range", "int", "float", "str", "print", "bool", "isinstance", "len"))


class _Body(NamedTuple):
    """The statements of a loop, as a function that `jax.lax.scan` calls for each pass."""

    lines: tuple[str, ...]
    carry: tuple[str, ...]
    """Names whose value goes from one pass to the next."""
    lists: tuple[tuple[str, str], ...]
    """Lists that get one item in each pass, with the code of the item."""


def find_unrolled_loop(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the loop that JAX unrolls for the jitted function that a stack compiles.

    The stack shows how long JAX compiles the function, but not its loops: they are searched in the
    source of this function, and of the functions that it uses.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    level, call = levels[-1], levels[-1].node
    at = next(number for number, frame in enumerate(frames) if frame is level.frame)
    if not isinstance(call, ast.Call) or not any(_JIT.search(one.file) for one in frames[:at]):
        return None
    for place in _reached(call.func, level.place, purity):
        for loop in place.function.loops:
            number = _number(loop, place.function)
            if number is None or _is_over_layers(loop, number):
                continue
            body = _body(loop, number, place.function)
            file = purity.program.file(place.path)
            if body is not None and file is not None:
                text = file.line_text(loop.line).rstrip(":")
                return _found(body, loop, number, level.frame, place, text)
    return None


def _reached(called: ast.expr, at: Place, purity: Purity) -> list[Place]:
    """Return a function of the program that JAX compiles, and the functions that it uses.

    Empty if it is a function of a library, which the program does not give to `jax.jit`.
    """
    first = _compiled(called, at, purity)
    found = [first] if first is not None else []
    for place in found:  # it grows
        if len(found) > _MOST_FUNCTIONS:
            break
        names = [one for one in place.function.nodes if isinstance(one, (ast.Name, ast.Attribute))]
        for name in names:
            used = _named(name, place, purity)
            if used is not None and all(used.function is not one.function for one in found):
                found.append(used)
    return found


def _compiled(called: ast.expr, at: Place, purity: Purity) -> Place | None:
    """Return the function that a jitted function executes."""
    place = _named(called, at, purity)
    if place is not None:
        decorators = getattr(place.function.node, "decorator_list", ())
        return place if any(_JITTED.search(ast.unparse(one)) for one in decorators) else None
    found = assigned_value(called.id, at.function) if isinstance(called, ast.Name) else None
    if found is None:
        return None
    match found[0]:
        case ast.Call(func=function, args=[first, *_]) if _JITTED.search(ast.unparse(function)):
            inner = first.args[0] if isinstance(first, ast.Call) and first.args else first
            return _named(inner, Place(at.path, found[1]), purity)
    return None


def _named(node: ast.expr, at: Place, purity: Purity) -> Place | None:
    """Return the function of the program that a name stands for."""
    if isinstance(node, ast.Name):
        named = purity.program.named(node.id, at)
    else:
        named = purity.program.called(ast.Call(node, [], []), at)
    return named if isinstance(named, Place) else None


def _number(loop: Loop, function: Function) -> str | None:
    """Return the name of the number of each pass of a long loop; None if it may be short."""
    match loop.node:
        case ast.For(
            target=ast.Name(id=name),
            iter=ast.Call(func=ast.Name(id="range"), args=[*_, end] as given) as iterable,
            orelse=[],
        ) if len(given) <= 2:
            count = length(iterable, function)
            is_long = _MANY.search(ast.unparse(end)) if count is None else count >= _LEAST
            return name if is_long else None
    return None


def _is_over_layers(loop: Loop, number: str) -> bool:
    """Return whether each pass may take its own parameters out of a list: `w, b = params[i]`."""
    for node in ast.walk(loop.node):
        match node:
            case ast.Assign(targets=[ast.Tuple()], value=ast.Subscript() as part):
                if number in names_in(part.slice):
                    return True
            case (
                ast.Subscript(value=ast.Subscript() as part)
                | ast.Attribute(value=ast.Subscript() as part, attr=_)
            ):
                is_method = isinstance(node, ast.Attribute) and root_name(part) != ""
                if number in names_in(part.slice) and not _is_at(part) and not is_method:
                    return True
            case ast.Call(func=ast.Subscript() as part) if number in names_in(part.slice):
                return True
    return False


def _is_at(part: ast.Subscript) -> bool:
    return isinstance(part.value, ast.Attribute) and part.value.attr == "at"


def _body(loop: Loop, number: str, function: Function) -> _Body | None:
    """Return the body of a loop as a function; None if it has other statements than assignments."""
    statements = getattr(loop.node, "body", [])
    lines: list[str] = []
    read_first: set[str] = set()
    given: dict[str, None] = {}
    lists: dict[str, str] = {}
    for one in statements:
        match one:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item]
                )
            ) if name not in lists and _is_empty_list(name, loop, function):
                read_first |= names_in(item) - given.keys()
                lists[name] = ast.unparse(item)
                continue
            case ast.Assign(targets=[target], value=value) if _names(target):
                read_first |= names_in(value) - given.keys()
                given |= dict.fromkeys(_names(target))
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                read_first |= (names_in(value) | {name}) - given.keys()
                given[name] = None
            case _:
                return None
        lines.append(ast.unparse(one))
    if not _is_traceable(statements, number) or read_first & lists.keys():
        return None
    later = {
        name
        for name in given
        if any(_is_outside(one, loop, function) for one in loads_of(name, function.nodes))
    }
    carry = [name for name in given if name in read_first or name in later]
    if not carry or not all(_has_first(name, loop, function) for name in carry):
        return None
    # What an item of a list is computed from must not change after it in the same pass.
    if any(lists.values()) and not isinstance(statements[-1], ast.Expr):
        return None
    return _Body(tuple(lines), tuple(carry), tuple(lists.items()))


def _names(target: ast.expr) -> list[str]:
    """Return the names of `a` or `a, b`; empty for another target."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [one.id for one in parts if isinstance(one, ast.Name)]
    return names if len(names) == len(parts) else []


def _is_empty_list(name: str, loop: Loop, function: Function) -> bool:
    """Return whether a name is a list that is empty before a loop, and that the loop only fills."""
    values = [one.value for one in function.assigned.get(name, ())]
    is_new = len(values) == 1 and isinstance(values[0], ast.List) and not values[0].elts
    uses = [one for one in ast.walk(loop.node) if isinstance(one, ast.Name) and one.id == name]
    return is_new and len(uses) == 1


def _is_traceable(statements: Sequence[ast.stmt], number: str) -> bool:
    """Return whether JAX can trace a body with an array as the number of the pass."""
    for one in statements:
        for node in ast.walk(one):
            if isinstance(node, _NUMBERS) and number in names_in(node):
                return False
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
                return False
            if isinstance(node, ast.Call) and root_name(node.func) in _FUNCTIONS:
                return False
    return True


def _is_outside(node: ast.Name, loop: Loop, function: Function) -> bool:
    """Return whether a name is read after a loop, or in a further pass of a loop around it."""
    if node.lineno > loop.last:
        return True
    around = [one for one in function.loops if one.first <= loop.line <= one.last]
    return any(one.first <= node.lineno < loop.line for one in around)


def _has_first(name: str, loop: Loop, function: Function) -> bool:
    """Return whether a name has a value before a loop that is no number of Python."""
    before = [one.value for one in function.assigned.get(name, ()) if one.line < loop.line]
    if not before:
        return name in function.params
    return not isinstance(before[-1], (ast.Constant, ast.List, type(None)))


def _found(
    body: _Body, loop: Loop, number: str, caller: Frame, place: Place, text: str
) -> CostlyOption:
    function = place.function
    name = next((one for one in _NAMES if not function.knows(one)), _NAMES[-1])
    jax = imported_name("jax", function, "jax")
    jnp = imported_name("jax.numpy", function, "jax.numpy")
    state = body.carry[0] if len(body.carry) == 1 else f"({', '.join(body.carry)})"
    items = [item for _, item in body.lists]
    item = "None" if not items else items[0] if len(items) == 1 else f"({', '.join(items)})"
    results = [one for one, _ in body.lists]
    result = "_" if not results else results[0] if len(results) == 1 else f"({', '.join(results)})"
    head = "state" if len(body.carry) > 1 else state
    opened = [f"{state} = state"] if len(body.carry) > 1 else []
    inner = "\n    ".join([*opened, *body.lines, f"return {state}, {item}"])
    given = ", ".join(map(ast.unparse, getattr(loop.iterable, "args", [])))
    function_code = f"def {name}({head}, {number}):\n    {inner}"
    # NumPy cannot take an item of an array with a number that JAX traces.
    made = "".join(f"`{one} = {jnp}.asarray({one})`; " for one in _indexed(loop, number, function))
    call = f"{state}, {result} = {jax}.lax.scan({name}, {state}, {jnp}.arange({given}))"
    return CostlyOption(
        name="loop_unrolled_by_jax",
        at=Frame(place.path, function.name or "<module>", loop.line, text),
        lines=(caller,),
        words={
            "file": place.path.rpartition("/")[2],
            "loop": str(loop.line),
            "last": str(loop.last),
            "code": f"{made}`{function_code}`; `{call}`",
            "results": f" `{results[0]}` is then an array, whose first axis has the passes."
            if results
            else "",
        },
    )


def _indexed(loop: Loop, number: str, function: Function) -> list[str]:
    """Return the names of the arrays of which each pass takes an item, and that NumPy may own."""
    found: dict[str, None] = {}
    for node in ast.walk(loop.node):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=part) if number in names_in(part):
                given = function.assigned.get(name, [])
                is_inside = any(loop.line <= one.line <= loop.last for one in given)
                made = [ast.unparse(one.value) for one in given if one.value is not None]
                is_of_jax = bool(made) and all(re.match(r"(jnp|jax)\.", one) for one in made)
                if not is_inside and not is_of_jax:
                    found[name] = None
    return list(found)
