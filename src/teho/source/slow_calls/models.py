"""Finds Keras models that each iteration of a loop loads or compiles again.

TensorFlow traces the functions of a model when it is first trained after `load_model` or
`compile`. If a loop saves the model and loads it again, or only changes the learning rate, the
model can stay in memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.parsed import Loop, dotted_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_model_made_again"]

_LOADS = frozenset(
    f"{library}.{module}.load_model"
    for library in ("keras", "tensorflow.keras", "tf_keras")
    for module in ("models", "saving")
)
_BUILDS = frozenset(
    f"{library}.{name}"
    for library in ("keras", "tensorflow.keras", "tf_keras")
    for name in ("Model", "Sequential", "models.Model", "models.Sequential")
)
_RUNS = frozenset(("fit", "evaluate", "predict", "train_on_batch", "test_on_batch"))
_KEEPS = frozenset(("append", "add", "insert", "put", "setdefault", "extend", "clone_model"))
_RESETS = frozenset(("set_weights", "load_weights", "clear_session", "clone_model"))
"""Functions of loops whose iterations begin with other weights: the optimizer must begin again."""
_RATE = "learning_rate"
_LEAST_ITERATIONS = 3


class _Again(NamedTuple):
    """The statements of a loop that load and compile a model."""

    model: str
    loads: ast.Assign | None
    compiles: ast.Expr | None
    begin: str
    """The code before the loop."""
    inside: str
    """The code in the loop in place of the statements; empty: none is needed."""


def find_model_made_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the statement on a stack that loads or compiles a Keras model in each iteration.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for level in levels:
        call = level.node
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if call.func.attr not in _RUNS or not isinstance(call.func.value, ast.Name):
            continue
        for loop in reversed(level.loops()):
            again = _again(call.func.value.id, loop, level, purity)
            if again is not None:
                return _found(again, loop, level)
    return None


def _again(model: str, loop: Loop, level: Level, purity: Purity) -> _Again | None:
    """Return what loads and compiles a model in a loop, under no condition."""
    node = loop.node
    is_long = may_iterate(loop, level.function, _LEAST_ITERATIONS)
    if not isinstance(node, ast.For) or not is_long:
        return None
    loads: ast.Assign | None = None
    compiles: ast.Expr | None = None
    saved: list[str] = []
    for one in node.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                if name == model:
                    called = purity.program.called(call, level.place)
                    if loads is not None or called not in _LOADS:
                        return None
                    loads = one
            case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name(id=name), method)) as call):
                if name == model and method == "compile":
                    if compiles is not None:
                        return None
                    compiles = one
                elif name == model and method == "save" and call.args:
                    saved.append(ast.unparse(call.args[0]))
    if compiles is None and loads is None:
        return None
    given = level.function.assigned.get(model, ())
    inside = [one for one in given if loop.line <= one.line <= loop.last]
    if len(inside) != (loads is not None) or model in level.function.params:
        return None
    if not _may_stay(model, node, purity):
        return None
    varying = set(_names_given(loop, level))
    if loads is not None:
        path = loads.value.args[0] if isinstance(loads.value, ast.Call) else None
        if path is None or ast.unparse(path) not in saved or _reads(loads, varying):
            return None
    elif not _is_keras(model, level, purity):
        return None
    code = _compiled_before(compiles, varying, model)
    if code is None:
        return None
    compiled, rate = code
    begin = [ast.unparse(loads)] if loads is not None else []
    begin += [compiled] if compiled else []
    return _Again(model, loads, compiles, "; ".join(begin), rate)


def _may_stay(model: str, loop: ast.For, purity: Purity) -> bool:
    """Return whether the model of an iteration can be the model of the next one."""
    nodes = purity.program.all_nodes(loop, loop.body)
    for node in nodes:
        match node:
            case ast.Attribute(attr="trainable", ctx=ast.Store()):
                return False  # a model must be compiled again after this change
            case ast.Call(func=func, args=args):
                name = func.attr if isinstance(func, ast.Attribute) else dotted_name(func)
                given = [one.id for one in args if isinstance(one, ast.Name)]
                if name in _RESETS or (name in _KEEPS and model in given):
                    return False
            case ast.Assign(value=ast.Name(id=name)) if name == model:
                return False  # another name keeps the model
            case ast.Break() | ast.Continue() | ast.Return():
                return False
    return True


def _is_keras(model: str, level: Level, purity: Purity) -> bool:
    """Return whether a name has a model that the function itself makes with Keras."""
    values = [one.value for one in level.function.assigned.get(model, ())]
    if len(values) != 1 or not isinstance(values[0], ast.Call):
        return False
    called = purity.program.called(values[0], level.place)
    if isinstance(called, str):
        return called in _BUILDS or called in _LOADS
    if not isinstance(called, Place):
        return False
    calls = (node for node in called.function.nodes if isinstance(node, ast.Call))
    names = (purity.program.called(node, called) for node in calls)
    return any(isinstance(one, str) and one in _BUILDS for one in names)


def _names_given(loop: Loop, level: Level) -> Iterator[str]:
    for name, given in level.function.assigned.items():
        if any(loop.line <= one.line <= loop.last for one in given):
            yield name


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in names
        for one in ast.walk(node)
    )


def _compiled_before(
    statement: ast.Expr | None, varying: set[str], model: str
) -> tuple[str, str] | None:
    """Return the code that compiles a model before the loop, and what the loop has to change.

    None: the iterations differ in more than the learning rate.
    """
    if statement is None:
        return "", ""
    if not _reads(statement, varying - {model}):
        return ast.unparse(statement), ""
    call = statement.value
    if not isinstance(call, ast.Call):
        return None
    words = {word.arg: word.value for word in call.keywords}
    optimizer = words.get("optimizer") or (call.args[0] if call.args else None)
    others = [one for one in (*call.args, *words.values()) if one is not optimizer]
    if any(_reads(one, varying) for one in others) or not isinstance(optimizer, ast.Call):
        return None
    rate = optimizer.args[0] if optimizer.args else None
    rate = next((word.value for word in optimizer.keywords if word.arg == _RATE), rate)
    if rate is None:
        return None
    rest = ast.Call(
        func=optimizer.func,
        args=[one for one in optimizer.args if one is not rate],
        keywords=[word for word in optimizer.keywords if word.value is not rate],
    )
    if rest.args or _reads(rest, varying):
        return None
    new = ast.Call(
        func=call.func,
        args=[rest if one is optimizer else one for one in call.args],
        keywords=[
            ast.keyword(word.arg, rest) if word.value is optimizer else word
            for word in call.keywords
        ],
    )
    return ast.unparse(new), f"{model}.optimizer.{_RATE} = {ast.unparse(rate)}"


def _found(again: _Again, loop: Loop, level: Level) -> CostlyOption:
    frame = level.frame
    statements = [one for one in (again.loads, again.compiles) if one is not None]
    first = statements[0]
    lines = sorted(
        line for one in statements for line in range(one.lineno, (one.end_lineno or 0) + 1)
    )
    is_block = lines[-1] - lines[0] == len(lines) - 1
    removed = f"{lines[0]}–{lines[-1]}" if is_block and len(lines) > 1 else f"{lines[0]}"
    if not is_block:
        removed = " and ".join(f"{one.lineno}–{one.end_lineno}" for one in statements)
    name = "keras_loaded_again" if again.loads is not None else "keras_compiled_again"
    call = first.value
    return CostlyOption(
        name=f"{name}_for_rates" if again.inside else name,
        at=Frame(frame.file, frame.function, first.lineno, ast.unparse(call)),
        lines=(),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "before": again.begin,
            "inside": again.inside,
            "removed": removed,
        },
    )
