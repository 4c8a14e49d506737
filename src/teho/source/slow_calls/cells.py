"""Finds recurrent cells that a loop calls for each time step, although all inputs are known.

`for t in range(n): h, c = self.cell(x[:, t], (h, c))` starts dozens of small operations for each
step. `torch.nn.LSTM` computes the whole sequence with one call, also in the backward pass.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.parsed import Function, Loop, dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_unrolled_cell"]

_CELLS = {
    **{f"torch.nn.{name}Cell": name for name in ("LSTM", "GRU", "RNN")},
    **{f"torch.nn.modules.rnn.{name}Cell": name for name in ("LSTM", "GRU", "RNN")},
}
_PLACED = ("input_size", "hidden_size", "bias")
_NAMES = ("steps", "all_steps", "steps_of_sequence")
_ENDS = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom)


class _Cell(NamedTuple):
    """A cell, and the only statement that makes it."""

    name: str
    """`self.cell`."""
    kind: str
    """`LSTM`, `GRU` or `RNN`."""
    made: ast.Call


class _Step(NamedTuple):
    """A call of a cell for one time step."""

    call: ast.Call
    statement: ast.Assign
    state: str
    """Name of the state that is the output of the step."""
    others: tuple[str, ...]
    """Names of the other states: `c` of an LSTM."""
    sequence: ast.expr
    """All inputs."""
    axis: int
    """Axis of the time steps."""
    number: str
    """The name of its number: `t`."""


def find_unrolled_cell(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call of a cell on a stack, which a loop makes for each step of a known sequence.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for level in levels:
        call = level.node
        loops = level.loops()
        if not isinstance(call, ast.Call) or not loops or not dotted_name(call.func):
            continue
        cell = _cell(dotted_name(call.func), level, purity)
        loop = loops[-1]
        step = _step(call, loop) if cell is not None else None
        if cell is None or step is None:
            continue
        first = _first_state(step, cell, loop, level.function)
        if first is not None and _is_whole(step, loop, level.function, purity):
            return _found(cell, step, first, loop, level)
    return None


def _cell(name: str, level: Level, purity: Purity) -> _Cell | None:
    """Return the cell of a name, if it is made at one place and called at one place."""
    function: Function = level.function
    owner = function.owner
    if not name.startswith("self.") or owner is None or name.count(".") != 1:
        return None
    made: list[tuple[ast.expr, Place]] = []
    uses = 0
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and dotted_name(node) == name:
            uses += isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Assign) and name in map(dotted_name, node.targets):
            place = level.place._replace(function=level.file.function_at(node.lineno))
            made.append((node.value, place))
    if len(made) != 1 or uses != 1:
        return None
    value, place = made[0]
    called = purity.program.called(value, place) if isinstance(value, ast.Call) else None
    kind = _CELLS.get(called) if isinstance(called, str) else None
    if kind is None or not isinstance(value, ast.Call) or len(value.args) > len(_PLACED):
        return None
    is_plain = not any(isinstance(one, ast.Starred) for one in value.args)
    is_plain &= all(word.arg for word in value.keywords)
    return _Cell(name, kind, value) if is_plain else None


def _step(call: ast.Call, loop: Loop) -> _Step | None:
    """Return the step of a loop over `range(n)` that gives a cell the input at `t`."""
    if len(call.args) != 2 or call.keywords:
        return None
    match loop.node:
        case ast.For(
            target=ast.Name(id=index),
            iter=ast.Call(func=ast.Name(id="range"), args=[_], keywords=[]),
            body=body,
        ):
            pass
        case _:
            return None
    sequence = _sequence(call.args[0], index)
    if sequence is None:
        return None
    for node in body:  # in each iteration, under no condition
        match node:
            case ast.Assign(targets=[ast.Name(id=state)], value=value) if value is call:
                others: tuple[str, ...] = ()
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=state), ast.Name(id=other)])], value=value
            ) if value is call:
                others = (other,)
            case _:
                continue
        wanted = f"({state}, {others[0]})" if others else state
        if ast.unparse(call.args[1]) == wanted and index not in (state, *others):
            return _Step(call, node, state, others, sequence[0], sequence[1], index)
    return None


def _sequence(given: ast.expr, index: str) -> tuple[ast.expr, int] | None:
    """Return the array of `x[:, t]`, `x[:, t, :]` or `x[t]`, and the axis of the steps."""
    if not isinstance(given, ast.Subscript) or not dotted_name(given.value):
        return None
    parts = given.slice.elts if isinstance(given.slice, ast.Tuple) else [given.slice]
    texts = [ast.unparse(one) for one in parts]
    for axis in (0, 1):
        if texts in ([":"] * axis + [index], [":"] * axis + [index] + [":"] * (2 - axis)):
            return given.value, axis
    return None


def _first_state(step: _Step, cell: _Cell, loop: Loop, function: Function) -> str | None:
    """Return the argument with the first state; None if this is not clear.

    Only the step gives the state a value in the loop: another change of it, such as a dropout,
    would need the loop.
    """
    names = (step.state, *step.others)
    if len(names) != (2 if cell.kind == "LSTM" else 1):
        return None
    has_first: list[bool] = []
    for name in names:
        given = function.assigned.get(name, [])
        inside = [one for one in given if loop.line <= one.line <= loop.last]
        before = [one for one in given if one.line < loop.line]
        if len(inside) != 1 or not (before or name in function.params):
            return None
        value = before[-1].value if before else None
        is_default = not before and function.default(name) is not None
        if (before and value is None) or is_default:
            return None
        has_first.append(not (isinstance(value, ast.Constant) and value.value is None))
    if not all(has_first):
        return None  # the state may be `None` at first
    parts = [f"{name}[None]" for name in names]
    return f", ({', '.join(parts)})" if step.others else f", {parts[0]}"


def _is_whole(step: _Step, loop: Loop, function: Function, purity: Purity) -> bool:
    """Return whether a loop computes each step, with inputs that are known before it."""
    statements = getattr(loop.node, "body", [])
    nodes = purity.program.all_nodes(loop.node, statements)
    if any(isinstance(node, _ENDS) for node in nodes):
        return False
    root = root_name(step.sequence)
    names = {root, step.number} if root != "self" else {step.number}
    for name in names:
        given = (one for one in function.assigned.get(name, ()) if one.loop is not loop)
        if any(loop.line <= one.line <= loop.last for one in given):
            return False
    for node in nodes:
        match node:
            case ast.Subscript(value=value, ctx=ast.Store()) if root_name(value) == root:
                return False
            case ast.Attribute(value=value, ctx=ast.Store()) if root_name(value) == root:
                return False
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                if root != "self" and root_name(value) == root and method.endswith("_"):
                    return False
    used = [
        node
        for node in function.nodes
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.lineno >= loop.line
        and not step.call.lineno <= node.lineno <= (step.call.end_lineno or 0)
    ]
    before = [node for node in used if node.id == step.state and node.lineno < step.call.lineno]
    is_read_first = any(node.lineno >= loop.first for node in before)
    return not is_read_first and all(node.id not in step.others for node in used)


def _found(cell: _Cell, step: _Step, first: str, loop: Loop, level: Level) -> CostlyOption:
    frame = level.frame
    used = level.function.assigned.keys() | set(level.function.params)
    steps = next((name for name in _NAMES if name not in used), _NAMES[-1])
    given = [ast.unparse(one) for one in cell.made.args[:2]]
    if len(cell.made.args) == len(_PLACED):
        given.append(f"bias={ast.unparse(cell.made.args[2])}")
    given += [ast.unparse(word) for word in cell.made.keywords]
    if step.axis == 1:
        given.append("batch_first=True")
    old = ast.unparse(cell.made.func)
    sequence = ast.unparse(step.sequence)
    words = {
        "file": frame.file.rpartition("/")[2],
        "made": str(cell.made.lineno),
        "new_cell": f"{cell.name} = {old.removesuffix('Cell')}({', '.join(given)})",
        "loop": str(loop.line),
        "line": str(step.statement.lineno),
        "before": f"{steps} = {cell.name}({sequence}{first})[0].unbind({step.axis})",
        "new": f"{step.state} = {steps}[{step.number}]",
    }
    text = ast.unparse(step.call)
    return CostlyOption(
        name="cell_for_each_step",
        at=Frame(frame.file, frame.function, step.call.lineno, text),
        lines=(frame,),
        words=words,
    )
