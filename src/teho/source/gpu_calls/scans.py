"""Finds loops of JAX that a GPU computes in many small steps, one after the other.

For each iteration of `lax.scan`, XLA starts the kernels of one step, and the next step waits for
them (JAX, issue 2491). If a step has little work, the GPU has only a few
threads at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from teho.source.constants import number_of
from teho.source.gpu_calls.call import GpuCall, InFile, called_name, short
from teho.source.gpu_calls.linear import LinearStep, step_of
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function
from teho.source.program import Place
from teho.source.slow_calls.loop_parts import imported_name, names_in

__all__ = ["find_small_steps"]

_SCAN = "jax.lax.scan"
_LOOPS = {"jax.lax.fori_loop": 2, "jax.lax.while_loop": 1}
"""Loops of JAX -> position of the function with one step."""
_MAP = "jax.lax.map"
_TRAINS = ("grad", "update", "apply_", "step", "learn", "train", "loss")
"""Parts of names of functions that train: a scan over steps of a training has large steps."""
_LEAST_STEPS = 32
"""A shorter loop starts few kernels."""
_SIZED = {"arange": 0, "linspace": 2, "split": 1}
"""Functions that make the items of a scan -> position of their number."""


def find_small_steps(source: InFile) -> Iterator[GpuCall]:
    """Yield the loops of JAX that may have small steps.

    Args:
        source: the file.
    """
    for call, place, name in source.calls():
        if name == _SCAN:
            yield from _scan(call, place, source)
        elif name in _LOOPS:
            body = _function(call, _LOOPS[name], place, source)
            if body is not None and not _trains(body) and not _is_unrolled(call):
                yield GpuCall("loop_of_small_steps", call, {"loop": name.rpartition(".")[2]})
        elif name == _MAP and len(call.args) == 2 and not call.keywords:
            function, items = call.args
            jax = imported_name("jax", place.function, "jax")
            new = f"{jax}.vmap({ast.unparse(function)})({ast.unparse(items)})"
            yield GpuCall("mapped_in_turn", call, {"new": new, "old": short(call)})


def _scan(call: ast.Call, place: Place, source: InFile) -> Iterator[GpuCall]:
    body = _function(call, 0, place, source)
    if body is None or _trains(body) or _is_unrolled(call) or _is_short(call, place, source):
        return
    step = step_of(body.node)
    if step is None:
        yield GpuCall("scan_of_small_steps", call, {"scan": short(call.func)})
        return
    statement = _statement(call, place.function)
    known = _names_are_known(step, body, place.function)
    lines = _in_parallel(call, step, statement, place) if known else None
    if lines is None or statement is None:
        yield GpuCall("linear_scan", call, {"step": f"{step.state}"})
        return
    words = {"lines": lines, "first": str(statement.lineno)}
    yield GpuCall("linear_scan_rewritten", call, words)


def _function(call: ast.Call, position: int, place: Place, source: InFile) -> Function | None:
    """Return the function with one step of a loop."""
    if len(call.args) <= position:
        return None
    node = call.args[position]
    if isinstance(node, ast.Lambda):
        return source.file.lambda_around(node.body)
    if not isinstance(node, ast.Name):
        return None
    found = source.purity.program.named(node.id, place)
    if isinstance(found, Place):
        return found.function
    value = assigned_value(node.id, place.function)
    given = value[0] if value is not None else None
    return source.file.lambda_around(given.body) if isinstance(given, ast.Lambda) else None


def _trains(function: Function) -> bool:
    """Return whether a step computes gradients, or calls functions that may do much work."""
    called = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(function.node)
        if isinstance(node, ast.Call)
    )
    return any(part in name for name in called for part in _TRAINS)


def _is_unrolled(call: ast.Call) -> bool:
    return any(word.arg in ("unroll", None) for word in call.keywords)


def _is_short(call: ast.Call, place: Place, source: InFile) -> bool:
    """Return whether a scan certainly has few iterations."""
    words = {word.arg: word.value for word in call.keywords}
    items = words.get("xs", call.args[2] if len(call.args) > 2 else None)
    length = words.get("length", call.args[3] if len(call.args) > 3 else None)
    if length is None and isinstance(items, ast.Name):
        found = assigned_value(items.id, place.function)
        items = found[0] if found else None
    if length is None and isinstance(items, ast.Call):
        name = called_name(items, place, source.purity).rpartition(".")[2]
        position = _SIZED.get(name)
        if position is not None and len(items.args) == position + 1:
            length = items.args[position]
    number = number_of(length, place, source.purity) if length is not None else None
    return number is not None and number.value < _LEAST_STEPS


def _statement(call: ast.Call, function: Function) -> ast.Assign | None:
    """Return the statement `state, outputs = scan(...)`."""
    for node in function.nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(), ast.Name()])], value=value) if (
                value is call
            ):
                return node
    return None


def _names_are_known(step: LinearStep, body: Function, function: Function) -> bool:
    """Return whether the statement with the scan knows the names of the step.

    It does if the function of the step is in the same function, or if the step reads only names of
    the file.
    """
    if body.parent is function:
        return True
    names = names_in(step.factor) | names_in(step.term)
    hidden = any(function.binds(name) for name in names - {step.item})
    return body.parent is function.module and not hidden


def _in_parallel(
    call: ast.Call, step: LinearStep, statement: ast.Assign | None, place: Place
) -> str | None:
    """Return the statements that compute a linear recurrence in parallel."""
    words = {word.arg: word.value for word in call.keywords}
    given = dict(zip(("f", "init", "xs"), call.args, strict=False)) | words
    reverse = given.pop("reverse", None)
    if set(given) != {"f", "init", "xs"} or statement is None or not step.gives_state:
        return None
    if reverse is not None:
        return None
    match statement.targets:
        case [ast.Tuple(elts=[ast.Name(id=last), ast.Name(id=series)])]:
            pass
        case _:
            return None
    jax = imported_name("jax", place.function, "jax")
    jnp = imported_name("jax.numpy", place.function, "jnp")
    first, items = ast.unparse(given["init"]), ast.unparse(given["xs"])
    factor, term = ast.unparse(step.factor), ast.unparse(step.term)
    same = f"{jnp}.broadcast_arrays(first, {factor}, {term})[1:]"
    lines = [
        f"first = {jnp}.asarray({first})",
        f"factors, terms = {jax}.vmap(lambda {step.item}: {same})({items})",
        "terms = terms.at[0].add(factors[0] * first)",
        "join = lambda one, two: (two[0] * one[0], two[0] * one[1] + two[1])",
        f"_, {series} = {jax}.lax.associative_scan(join, (factors, terms))",
    ]
    if last != "_":
        lines.append(f"{last} = {series}[-1]")
    return "; ".join(lines)
