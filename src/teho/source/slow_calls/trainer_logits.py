"""Finds evaluations of transformers' Trainer that collect all logits, only for an `argmax`.

Without `preprocess_logits_for_metrics`, the Trainer keeps the logits of the whole evaluation,
copies them to host memory, and gives them to `compute_metrics`. If only the place of the largest
logit is used, the GPU can find this place, and only one number per token is copied.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.options.results import Parents, parents_of
from teho.source.parsed import Function, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_collected_logits"]

_TRAINER = lazy_pattern(r"\w*Trainer$")
_COLLECTS = lazy_pattern(r"/transformers/trainer_pt_utils\.py$")
_LAST_AXIS = ("-1", "2")


def find_collected_logits(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the `compute_metrics` of a Trainer that uses only the `argmax` of all logits.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    is_collecting = any(_COLLECTS.search(frame.file) for frame in frames)
    if not levels or not (is_collecting or "argmax(" in levels[-1].frame.text):
        return None
    for level in levels:
        for made, place in _trainers(level):
            words = {word.arg: word.value for word in made.keywords}
            metrics = words.get("compute_metrics")
            if metrics is None or None in words or "preprocess_logits_for_metrics" in words:
                continue
            called = (
                purity.program.named(metrics.id, place) if isinstance(metrics, ast.Name) else None
            )
            if not isinstance(called, Place):
                continue
            file = purity.program.file(called.path)
            found = _only_argmax(called.function, parents_of(file)) if file else None
            if file is None or found is None:
                continue
            logits, best = found
            return CostlyOption(
                name="trainer_collects_logits",
                at=Frame(called.path, called.function.name, best.lineno, file.text_of(best)),
                lines=(levels[-1].frame,),
                words={
                    "file": level.frame.file.rpartition("/")[2],
                    "made": str(made.lineno),
                    "metrics": ast.unparse(metrics),
                    "best": file.text_of(best),
                    "logits": logits,
                },
            )
    return None


def _trainers(level: Level) -> Iterator[tuple[ast.Call, Place]]:
    """Yield the calls that make a Trainer, with the functions that have them."""
    for function in level.function.module.every():
        for node in function.nodes:
            if isinstance(node, ast.Call):
                target = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if _TRAINER.match(target or root_name(node.func)):
                    yield node, Place(level.frame.file, function)


def _only_argmax(function: Function, parents: Parents) -> tuple[str, ast.Call] | None:
    """Return the logits and their `argmax`, if `compute_metrics` uses them for nothing else."""
    if len(function.params) != 1:
        return None
    (given,) = function.params
    names = _logits(function, given)
    uses = [
        node
        for node in function.nodes
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node) in names
    ]
    if not uses:
        return None
    bests = [_argmax_of(use, parents) for use in uses]
    best = bests[0]
    if best is None or len(bests) > 1:
        return None
    return ast.unparse(uses[0]), best


def _logits(function: Function, given: str) -> set[str]:
    """Return the names that the logits have: of `logits, labels = prediction`, `logits`."""
    names = {f"{given}.predictions"}
    for node in function.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=name), _])], value=ast.Name(id=value)
            ) if value == given:
                names.add(name)
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=name), _])],
                value=ast.Tuple(elts=[ast.Attribute(attr="predictions") as first, _]),
            ) if root_name(first) == given:
                return {name}
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Attribute(attr="predictions") as value
            ) if root_name(value) == given:
                return {name}
    return names


def _argmax_of(node: ast.expr, parents: Parents) -> ast.Call | None:
    """Return the `argmax` over the last axis that gets the logits; None: another use."""
    outer = parents.get(node)
    match outer:
        case ast.Call(func=ast.Attribute(attr="argmax"), args=[first, *axis]) if first is node:
            return outer if _is_last(axis, outer) else None
        case ast.Attribute(attr="argmax"):
            call = parents.get(outer)
            if isinstance(call, ast.Call) and call.func is outer and _is_last(call.args, call):
                return call
    return None


def _is_last(axis: Sequence[ast.expr], call: ast.Call) -> bool:
    given = [*axis, *(word.value for word in call.keywords if word.arg in ("axis", "dim"))]
    is_plain = len(given) == 1 and len(call.keywords) == len(given) - len(axis)
    return is_plain and ast.unparse(given[0]) in _LAST_AXIS
