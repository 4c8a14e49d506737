"""Finds boosted trees that predict all their trees again after each new tree.

XGBoost keeps its predictions for a `DMatrix`, and adds only those of the new trees. If a loop makes
the `DMatrix` again for each prediction, all trees are computed again each time.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop, root_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_predicted_again"]

_DATA = frozenset(("xgboost.DMatrix", "xgboost.QuantileDMatrix"))
_NAMES = ("held_out", "to_predict", "data_to_predict")


def find_predicted_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the prediction on a stack that has a new `DMatrix` of the same data in each round.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for number, level in enumerate(levels):
        if level.node is None:
            continue
        for loop in reversed(level.loops()):
            if not loop.is_statement:
                continue
            for model, call, data in _predictions(level, loop, purity):
                made = level.node in ast.walk(call) or level.node in ast.walk(data)
                if (
                    made
                    and _adds_trees(model, loop)
                    and _is_same(data, levels, number, loop, purity)
                ):
                    return _found(call, data, loop, level)
    return None


def _predictions(level: Level, loop: Loop, purity: Purity) -> list[tuple[str, ast.Call, ast.Call]]:
    """Return the predictions of a loop: the model's name, the call, and what makes its data."""
    found = []
    body = purity.program.all_nodes(loop.node, getattr(loop.node, "body", []))
    for node in body:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=model), attr="predict"),
                args=[ast.Call() as data, *_],
            ) if purity.program.called(data, level.place) in _DATA:
                found.append((model, node, data))
    return found


def _adds_trees(model: str, loop: Loop) -> bool:
    """Return whether a loop adds trees to a model, which stays the same object."""
    is_new = any(
        isinstance(one, ast.Name) and one.id == model and isinstance(one.ctx, ast.Store)
        for one in ast.walk(loop.node)
    )
    calls = (one.func for one in ast.walk(loop.node) if isinstance(one, ast.Call))
    return not is_new and any(
        isinstance(one, ast.Attribute)
        and one.attr in ("update", "boost")
        and root_name(one) == model
        for one in calls
    )


def _is_same(
    data: ast.Call, levels: Sequence[Level], number: int, loop: Loop, purity: Purity
) -> bool:
    """Return whether each iteration makes the data from the same arrays."""
    inputs = ast.Tuple(elts=[*data.args, *(one.value for one in data.keywords)], ctx=ast.Load())
    changed = list(levels)
    changed[number] = levels[number]._replace(node=inputs)
    return Inputs(changed, number, loop, purity).of_call(number) is Value.SAME


def _found(call: ast.Call, data: ast.Call, loop: Loop, level: Level) -> CostlyOption:
    frame = level.frame
    name = next((one for one in _NAMES if not level.function.knows(one)), _NAMES[-1])
    made = ast.unparse(data)
    return CostlyOption(
        name="predicted_with_all_trees",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "before": f"{name} = {made}",
            "new": ast.unparse(call).replace(made, name),
        },
    )
