"""Finds steps of a discriminator whose backward pass goes through the generator for nothing.

In the step of the discriminator (or critic) of a GAN, only its own parameters are changed. If the
generated batch is not detached, the backward pass also computes the gradients of the generator,
which are not used.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, dotted_name
from teho.source.slow_calls.loop_parts import depends_on, names_in
from teho.source.stack import Level, argument

__all__ = ["find_attached_fake"]

_DETACHES = frozenset(("detach", "detach_", "no_grad", "inference_mode", "requires_grad_"))
_OPTIMIZERS = frozenset(
    (
        *("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax"),
        *("LBFGS", "Rprop", "ASGD", "Adafactor", "Lion"),
    )
)


class _Step(NamedTuple):
    """A backward pass, and the step after it."""

    losses: set[str]
    model: str
    """The model whose parameters the optimizer has."""


def find_attached_fake(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the generated batch through which a backward pass on a stack goes for nothing.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    for number, level in enumerate(levels):
        call = level.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr != "backward" or call.args or call.keywords:
            continue
        body = _block(call, level.function)
        step = _step(call, body, number, levels)
        if step is None:
            return None
        return _generated(call, body, step, level)
    return None


def _block(call: ast.Call, function: Function) -> list[ast.stmt]:
    """Return the statements of the block that has a statement with a call."""
    for node in (function.node, *function.nodes):
        for block in ("body", "orelse"):
            body = getattr(node, block, None)
            if not isinstance(body, list):
                continue
            if any(isinstance(one, ast.Expr) and one.value is call for one in body):
                return body
    return []


def _step(
    call: ast.Call, body: Sequence[ast.stmt], number: int, levels: Sequence[Level]
) -> _Step | None:
    """Return what a backward pass is for; None: it is not clear."""
    place = next(
        (at for at, one in enumerate(body) if isinstance(one, ast.Expr) and one.value is call), None
    )
    if place is None or not isinstance(call.func, ast.Attribute):
        return None
    optimizers: list[ast.expr] = []
    for one in body[place + 1 :]:
        match one:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=optimizer, attr="step"))):
                if "sched" not in dotted_name(optimizer):
                    optimizers.append(optimizer)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="backward"))):
                break
    else:
        if _steps_elsewhere(levels):
            return None
    if len(optimizers) != 1:
        return None  # the second step, or a second backward pass, may need the gradients
    model = _model_of(optimizers[0], number, levels)
    return _Step(names_in(call.func.value), model) if model else None


def _steps_elsewhere(levels: Sequence[Level]) -> bool:
    """Return whether a function makes optimizer steps with the gradients of another function."""
    for function in levels[-1].function.module.every():
        methods = {
            node.func.attr
            for node in function.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if "step" in methods and "backward" not in methods:
            return True
    return False


def _model_of(optimizer: ast.expr, number: int, levels: Sequence[Level]) -> str:
    """Return the model of an optimizer that has the parameters of one model; empty: not clear."""
    for at in range(number, -1, -1):
        level = levels[at]
        if not isinstance(optimizer, ast.Name):
            return ""
        if optimizer.id in level.function.params:
            given = argument(levels, at, optimizer.id)
            if given is None:
                return ""
            optimizer = given
            continue
        found = assigned_value(optimizer.id, level.function)
        return _of_parameters(found[0]) if found is not None else ""
    return ""


def _of_parameters(made: ast.expr) -> str:
    """Return `critic` of `torch.optim.Adam(critic.parameters(), lr=1e-4)`."""
    match made:
        case ast.Call(func=func, args=[first, *_]) if (
            dotted_name(func).rpartition(".")[2] in _OPTIMIZERS
        ):
            match first:
                case ast.Call(func=ast.Attribute(value=model, attr="parameters"), args=[]):
                    return dotted_name(model)
    return ""


def _generated(
    call: ast.Call, body: Sequence[ast.stmt], step: _Step, level: Level
) -> CostlyOption | None:
    """Return the batch of another model in the loss, if its gradients are not used."""
    nodes = [inner for one in body for inner in ast.walk(one)]
    if any(
        isinstance(node, (ast.With, ast.AsyncWith))
        and _has_detach(node)
        and node.lineno < call.lineno
        for node in body
    ):
        return None
    owners = _owners(level.function)
    generators = {model for model in owners if model != step.model}
    backwards = [
        node
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
    ]
    for one in body:
        match one:
            case ast.Assign(targets=[ast.Name(id=fake)], value=ast.Call(func=func) as made):
                model = dotted_name(func)
                if model not in generators or one.lineno > call.lineno:
                    continue
                if not _is_clean(level.function, fake, model, one.lineno, call.lineno):
                    continue
                if not any(
                    depends_on(ast.Name(name, ast.Load()), {fake}, nodes) for name in step.losses
                ):
                    continue
                if _shares(model, step, owners):
                    continue
                used = _discriminated(fake, step.model, nodes, one.lineno, call.lineno)
                if used is None:
                    return None
                return _found(one, made, fake, used, len(backwards), level)
    return None


def _has_detach(node: ast.AST) -> bool:
    items = getattr(node, "items", ())
    return any(name in ast.unparse(item) for item in items for name in _DETACHES)


def _owners(function: Function) -> set[str]:
    """Return the models of the file whose parameters an optimizer of their own has."""
    found = set()
    for one in function.module.every():
        for node in one.nodes:
            if isinstance(node, ast.Call) and (model := _of_parameters(node)):
                found.add(model)
    return found


def _is_clean(function: Function, fake: str, model: str, first: int, last: int) -> bool:
    """Return whether the batch of some lines is attached to the model, and stays so.

    After these lines, the name may get another batch.
    """
    for node in function.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                if name == fake and attr in (*_DETACHES, "data", "grad"):
                    return False
                if name == model and attr in ("requires_grad_", "eval"):
                    return False
    return not any(first < one.line <= last for one in function.assigned.get(fake, ()))


def _shares(model: str, step: _Step, owners: set[str]) -> bool:
    """Return whether the models may share parameters: `net.decoder` is a part of `net`."""
    return (
        any(
            one.startswith(f"{other}.") for one, other in ((model, step.model), (step.model, model))
        )
        or not {model, step.model} <= owners
    )


def _discriminated(
    fake: str, model: str, nodes: Sequence[ast.AST], first: int, last: int
) -> ast.Call | None:
    """Return the only call of the discriminator with the batch before the backward pass."""
    before = [
        node
        for node in nodes
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id == fake
        and first < node.lineno <= last
    ]
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call)
        and dotted_name(node.func) == model
        and any(isinstance(one, ast.Name) and one.id == fake for one in node.args)
        and first < node.lineno <= last
    ]
    # An interpolated batch of a gradient penalty has the generated batch too.
    return calls[0] if len(calls) == 1 and len(before) == 1 else None


def _found(
    statement: ast.Assign,
    made: ast.Call,
    fake: str,
    used: ast.Call,
    backwards: int,
    level: Level,
) -> CostlyOption:
    frame = level.frame
    text = level.file.text_of(made)
    if backwards > 1:  # the step of the generator needs the batch with its graph
        old, line = level.file.text_of(used), used.lineno
        args = [
            ast.Name(f"{fake}.detach()", ast.Load())
            if isinstance(one, ast.Name) and one.id == fake
            else one
            for one in used.args
        ]
        new = ast.unparse(ast.Call(used.func, args, used.keywords))
    else:
        old, line, new = text, statement.lineno, f"{text}.detach()"
    return CostlyOption(
        name="generated_batch_attached",
        at=Frame(frame.file, frame.function, made.lineno, text),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "line": str(line),
            "old": old,
            "new": new,
            "generator": ast.unparse(made.func),
        },
    )
