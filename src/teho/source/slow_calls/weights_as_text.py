"""Finds weights of a model that each training step writes as text.

`json.dumps` and `tolist` make a Python number and several characters of each weight. This can take
longer than the step. Teho reports it only if the loop makes an optimizer step in each iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.changes import named_values
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, root_name
from teho.source.slow_calls.loop_parts import loads_of, names_in, statements_of
from teho.source.stack import Level

__all__ = ["find_weights_as_text"]

_LEAST_STEPS = 20
_WEIGHTS = lazy_pattern(r"\b(state_dict|named_parameters|parameters)\(\)")
_CONVERTS = lazy_pattern(r"\.tolist\(\)")
_TEXTS = frozenset(("dumps", "dump", "tolist", "write", "writerow", "savetxt"))
_DEEPEST = 3


def find_weights_as_text(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the call on a stack that writes all weights as text in each step.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr not in _TEXTS:
        return None
    loops = [one for one in level.loops() if isinstance(one.node, (ast.For, ast.While))]
    steps = [one for one in loops if _is_step(one)]
    if not steps or not may_iterate(steps[-1], level.function, _LEAST_STEPS):
        return None
    loop = steps[-1]
    body = list(statements_of(getattr(loop.node, "body", ())))
    written = [one for one in body if _writes(one, loop)]
    if not any(call in list(ast.walk(one)) for one in written):
        return None
    if _is_read_elsewhere(written, body, level.function):
        return None
    lines = [str(one.lineno) for one in written]
    frame = level.frame
    listed = " and ".join(filter(None, (", ".join(lines[:-1]), lines[-1])))
    last = written[-1]
    return CostlyOption(
        name="weights_as_text",
        at=Frame(frame.file, frame.function, last.lineno, _text(last, level)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "lines": f"lines {listed}" if len(lines) > 1 else f"line {listed}",
            "loop": str(loop.line),
        },
    )


def _is_step(loop: Loop) -> bool:
    """Return whether each iteration of a loop makes an optimizer step."""
    words = {
        node.func.attr
        for one in statements_of(getattr(loop.node, "body", ()))
        for node in ast.walk(one)
        if isinstance(one, ast.Expr)
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
    }
    return {"backward", "step"} <= words


def _writes(statement: ast.stmt, loop: Loop) -> bool:
    """Return whether a statement, in each iteration, makes text or numbers of all weights."""
    if not isinstance(statement, (ast.Assign, ast.Expr)):
        return False
    calls = [one for one in ast.walk(statement.value) if isinstance(one, ast.Call)]
    if not any(isinstance(one.func, ast.Attribute) and one.func.attr in _TEXTS for one in calls):
        return False
    text = _whole(statement.value, loop)
    return _WEIGHTS.search(text) is not None and _CONVERTS.search(text) is not None


def _is_read_elsewhere(
    written: Sequence[ast.stmt], body: Sequence[ast.stmt], function: Function
) -> bool:
    """Return whether other code needs a name to which these statements give a value."""
    names = {
        target.id
        for one in written
        for target, _ in named_values(one)
        if isinstance(target, ast.Name)
    }
    inside = {id(inner) for one in written for inner in ast.walk(one)}
    loads = [one for name in names for one in loads_of(name, function.nodes)]
    return any(id(one) not in inside for one in loads) or len(written) == len(body)


def _whole(node: ast.expr, loop: Loop) -> str:
    """Return the text of an expression, and of the values that the loop gives its names."""
    parts, names = [ast.unparse(node)], names_in(node)
    for _ in range(_DEEPEST):
        values = [
            value
            for one in getattr(loop.node, "body", ())
            for target, value in named_values(one)
            if isinstance(target, ast.Name) and root_name(target) in names
        ]
        parts += [ast.unparse(one) for one in values]
        names = {name for one in values for name in names_in(one)}
    return "\n".join(parts)


def _text(statement: ast.stmt, level: Level) -> str:
    value = getattr(statement, "value", None)
    return level.file.text_of(value) if isinstance(value, ast.expr) else ""
