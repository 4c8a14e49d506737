"""Finds averages of a model's weights that are kept in host memory and updated after each step.

Each update copies all weights from the GPU, waits for the step, and computes the average on the
cores of the node. An average on the GPU needs one more copy of the weights in the GPU's memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import Function, Loop
from teho.source.slow_calls.loop_parts import depends_on
from teho.source.stack import Level

__all__ = ["find_average_on_host"]

_WEIGHTS = lazy_pattern(r"\.(state_dict|named_parameters|parameters|named_buffers|buffers)\(")


def find_average_on_host(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the copy of weights on a stack that is only averaged in host memory.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        for loop in reversed(level.loops()):
            if loop.iterable is None or not _is_over_weights(loop.iterable, level.function):
                continue
            is_often = level.is_called_again or any(one.loops() for one in levels[:number])
            if not is_often and len(level.loops()) == 1:
                return None
            found = _average(loop, level.function)
            return _found(*found, level) if found else None
    return None


def _is_over_weights(node: ast.expr, function: Function) -> bool:
    """Return whether a loop goes through the weights of a model."""
    if isinstance(node, ast.Name):
        given = function.assigned.get(node.id, [])
        value = given[0].value if len(given) == 1 else None
        return value is not None and not isinstance(value, ast.Name) and _has_weights(value)
    return _has_weights(node)


def _has_weights(node: ast.expr) -> bool:
    return _WEIGHTS.search(ast.unparse(node)) is not None


def _average(loop: Loop, function: Function) -> tuple[ast.Call, ast.stmt, str] | None:
    """Return the copy, the update and the average; None: the copies are used in another way."""
    nodes = list(ast.walk(loop.node))
    items = {
        name for name, given in function.assigned.items() if any(one.loop == loop for one in given)
    }
    copies = [one for one in nodes if isinstance(one, ast.Call) and _copied(one) is not None]
    value = _copied(copies[0]) if len(copies) == 1 else None
    if value is None or not depends_on(value, items, ()):
        return None
    names = set(_names_of(copies[0], nodes))
    loads = [
        one
        for one in nodes
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in names
    ]
    for statement in nodes:
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr)):
            continue
        found = _update(statement)
        if found is None:
            continue
        target, fresh = found
        inside = set(ast.walk(fresh))
        is_only_averaged = all(one in inside for one in loads)
        if is_only_averaged and (copies[0] in inside or loads):
            return copies[0], statement, target
    return None


def _copied(call: ast.Call) -> ast.expr | None:
    """Return what a call copies to host memory; None: it does not."""
    match call:
        case ast.Call(func=ast.Attribute(attr="cpu", value=value), args=[], keywords=[]):
            return value
        case ast.Call(func=ast.Attribute(attr="to", value=value), args=[ast.Constant(value="cpu")]):
            return value
    return None


def _names_of(copy: ast.Call, nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if copy in ast.walk(value):
                yield name


def _update(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Return the average and the expression with the new weights.

    The update is one of `a = d * a + (1 - d) * new`, `a += (1 - d) * new`, `a.lerp_(new, 1 - d)`,
    and `a.mul_(d).add_(new, alpha=1 - d)`.
    """
    match statement:
        case ast.Assign(
            targets=[target],
            value=ast.BinOp(
                op=ast.Add(),
                left=ast.BinOp(op=ast.Mult()) as left,
                right=ast.BinOp(op=ast.Mult()) as right,
            ),
        ):
            name = ast.unparse(target)
            for old, new in ((left, right), (right, left)):
                if name in (ast.unparse(old.left), ast.unparse(old.right)):
                    return name, new
        case ast.AugAssign(
            target=target, op=ast.Add(), value=ast.BinOp(op=ast.Mult(), left=left) as value
        ) if ast.unparse(left).startswith(("1 - ", "1.0 - ")):
            return ast.unparse(target), value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="lerp_", value=target), args=[value, _])
        ):
            return ast.unparse(target), value
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    attr="add_",
                    value=ast.Call(func=ast.Attribute(attr="mul_", value=target), args=[_]),
                ),
                args=[value, *_],
            )
        ):
            return ast.unparse(target), value
    return None


def _found(copy: ast.Call, update: ast.stmt, target: str, level: Level) -> CostlyOption:
    frame, short = level.frame, level.frame.file.rpartition("/")[2]
    first, is_cloned = next(_first_copies(target, level.function), (None, False))
    cloned = ".clone()" if is_cloned else ""
    model = _model_of(target, level.function)
    begins = (
        f"Move `{model}` to the GPU where the program makes it, with `{model}.cuda()`"
        if model
        else f"At {short}:{first.lineno}, make the first copy of the weights on the GPU: write "
        f"`{ast.unparse(_copied(first) or first)}.clone()` instead of "
        f"`{ast.unparse(first)}{cloned}`"
        if first is not None
        else f"Make the first copy, `{_whole(target)}`, on the GPU, with `.clone()` and without "
        "`.cpu()`"
    )
    old = level.file.text_of(copy)
    return CostlyOption(
        name="weights_averaged_on_host",
        at=Frame(frame.file, frame.function, copy.lineno, old),
        lines=(frame,),
        words={
            "begins": begins,
            "place": f"{short}:{copy.lineno}",
            "old": ast.unparse(copy),
            "new": ast.unparse(_copied(copy) or copy),
            "average": model or _whole(target),
            "update": f"{short}:{update.lineno}",
        },
    )


def _model_of(target: str, function: Function) -> str:
    """Return the model whose weights are the average: of `for a, p in zip(ema.parameters(), …)`.

    Empty: the average is in a dictionary or a list.
    """
    for one in function.assigned.get(target, ()):
        if one.loop is not None and one.value is not None and _has_weights(one.value):
            return _WEIGHTS.split(ast.unparse(one.value))[0]
    return ""


def _whole(target: str) -> str:
    """Return the collection of an average: of `self.shadow[name]`, `self.shadow`."""
    return target.partition("[")[0]


def _first_copies(target: str, function: Function) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the copies to host memory with which the averages begin.

    And whether each of them is copied again with `.clone()`.
    """
    whole = _whole(target)
    for one in function.module.every():
        if one is not function and not whole.startswith("self."):
            continue
        for node in one.nodes:
            match node:
                case ast.Assign(targets=[first], value=value) if ast.unparse(first) == whole:
                    text = ast.unparse(value)
                    for inner in ast.walk(value):
                        if isinstance(inner, ast.Call) and _copied(inner) is not None:
                            yield inner, f"{ast.unparse(inner)}.clone()" in text
