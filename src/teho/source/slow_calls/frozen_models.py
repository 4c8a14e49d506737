"""Finds a frozen model that is applied to the same samples again in each epoch of a training.

An encoder whose parameters do not change gives the same features for a sample in each epoch: they
can be computed once, before the training.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, SourceFile, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import names_in
from teho.source.stack import Level

__all__ = ["find_frozen_model"]

_MODULE = lazy_pattern(r"/torch/nn/modules/module\.py$")
_NO_GRADIENTS = lazy_pattern(r"\b(no_grad|inference_mode)\b")
_FROZEN = lazy_pattern(rb"\.requires_grad_\(False\)|\.requires_grad ?= ?False")
_TRAINED_LATER = lazy_pattern(
    rb"\.requires_grad_\((True)?\)|\.requires_grad ?= ?True|\blerp_\(|\.copy_\(|update_parameters"
    rb"|load_state_dict\([^)\n]*\.state_dict\(|\b(ema|polyak|momentum)\w* ?[=(]|\bunfreeze"
)
"""Code that trains a frozen model after all, or gives it other parameters: a target network."""
_FIXED_MODE = lazy_pattern(rb"\.eval\(\)")
_CHANGED = lazy_pattern(
    r"\b(rand|randn|rand_like|randn_like|normal|normal_|standard_normal|uniform|uniform_|random"
    r"|bernoulli|poisson|\w*noise\w*|\w*augment\w*|\w*jitter\w*|\w*crop\w*|\w*flip\w*|mixup|cutmix"
    r"|\w*mask\w*|transform\w*)\("
)
"""Calls that give a sample other values in each epoch. Drawing numbers of samples is none."""
_DEEPEST = 3
_NAMES = ("all_features", "features_of_all", "features_of_all_samples")


class _Call(NamedTuple):
    """The application of a frozen model, and the loop over the epochs."""

    level: Level
    """Of the call of the model."""
    outer: Level
    """Of the loop."""
    loop: Loop


def find_frozen_model(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the call on a stack of a frozen model, in a training that goes through its data again.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    for number, level in enumerate(levels):
        if not isinstance(level.node, ast.Call) or not _applies_model(level, frames):
            continue
        is_without = any(_has_no_gradients(one) for one in levels[: number + 1])
        if not is_without or not _is_frozen(level.file, level.node):
            continue
        found = _in_epochs(levels[: number + 1], purity)
        if found is not None:
            return _found(found)
    return None


def _applies_model(level: Level, frames: Sequence[Frame]) -> bool:
    """Return whether a call calls a module of PyTorch."""
    at = next(number for number, frame in enumerate(frames) if frame is level.frame)
    return at > 0 and _MODULE.search(frames[at - 1].file) is not None


def _has_no_gradients(level: Level) -> bool:
    """Return whether a level runs its line without gradients."""
    decorators = getattr(level.function.node, "decorator_list", ())
    if any(_NO_GRADIENTS.search(ast.unparse(one)) for one in decorators):
        return True
    line = level.frame.line
    return any(
        isinstance(one, ast.With)
        and one.lineno <= line <= (one.end_lineno or 0)
        and any(_NO_GRADIENTS.search(ast.unparse(item.context_expr)) for item in one.items)
        for one in level.function.nodes
    )


def _is_frozen(file: SourceFile, call: ast.Call) -> bool:
    """Return whether a file freezes a model, as far as its text says, and never trains it."""
    text = b"\n".join(file.lines)
    if not _FROZEN.search(text) or not _FIXED_MODE.search(text) or _TRAINED_LATER.search(text):
        return False
    # The mode of a part changes with the mode of the whole: its dropout then differs.
    is_part = isinstance(call.func, ast.Attribute)
    return not is_part or b".train()" not in text


def _in_epochs(levels: Sequence[Level], purity: Purity) -> _Call | None:
    """Return the outermost loop that trains, and goes through the same samples again."""
    loops = [(one, loop) for one in levels for loop in one.loops() if loop.is_statement]
    if len(loops) < 2:
        return None
    outer, loop = loops[0]
    counted = loop.iterable
    if not isinstance(counted, ast.Call) or not may_iterate(loop, outer.function, 2):
        return None
    if root_name(counted.func) not in ("range", "trange", "tqdm"):
        return None
    body = getattr(loop.node, "body", [])
    code = _code(body, outer.place, purity, 0, set())
    if "backward" not in " ".join(code) or any(_CHANGED.search(one) for one in code):
        return None
    if _gives_new_data(outer, loop):
        return None
    return _Call(levels[-1], outer, loop)


def _code(
    nodes: Sequence[ast.AST], at: Place, purity: Purity, depth: int, seen: set[int]
) -> list[str]:
    """Return the text of some code, and of the functions of the program that it calls."""
    found = [ast.unparse(one) for one in nodes]
    calls = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Call)]
    for call in calls if depth < _DEEPEST else ():
        called = purity.program.called(call, at)
        if isinstance(called, Place) and id(called.function) not in seen:
            seen.add(id(called.function))
            found += _code(called.function.body, called, purity, depth + 1, seen)
    # The data set that a loader reads.
    for function in at.function.module.every() if depth == 0 else ():
        if function.name in ("__getitem__", "__iter__") or "collate" in function.name:
            found += [ast.unparse(one) for one in function.body]
    return found


def _gives_new_data(outer: Level, loop: Loop) -> bool:
    """Return whether the samples may be others in each epoch.

    Names that the loop gives values must come from names that it does not: `x` of `for x, y in
    loader`, but not `data` of `data = make(epoch)`.
    """
    target = loop.node.target if isinstance(loop.node, ast.For) else None
    epoch = {target.id} if isinstance(target, ast.Name) else set()
    inner = [one for one in outer.loops() if one.is_statement and one is not loop]
    iterables = [one.iterable for one in inner if one.iterable is not None]
    call = outer.node
    parts = [*iterables, *([call] if call is not None else [])]
    if any(names_in(one) & epoch for one in parts):
        return True
    for name in {name for one in iterables for name in names_in(one)}:
        given = [one for one in outer.function.assigned.get(name, ()) if one.loop is None]
        if any(loop.line < one.line <= loop.last and _makes(one.value) for one in given):
            return True
    return False


def _makes(value: ast.expr | None) -> bool:
    """Return whether a value may be new data: not an order, such as `torch.randperm(n)`."""
    text = ast.unparse(value) if value is not None else ""
    return not re.search(r"\b(randperm|permutation|shuffle|arange|split|range|argsort)\b", text)


def _found(call: _Call) -> CostlyOption:
    level, outer = call.level, call.outer
    frame = level.frame
    words = {
        "file": outer.frame.file.rpartition("/")[2],
        "loop": str(call.loop.line),
        "how": _how(outer, call.loop),
    }
    return CostlyOption(
        name="frozen_model_in_epochs",
        at=Frame(frame.file, frame.function, frame.line, level.file.text_of(level.node))
        if level.node is not None
        else frame,
        lines=(frame,),
        words=words,
    )


def _how(outer: Level, loop: Loop) -> str:
    """Return the code for one batch of rows, `x[rows]`, or what to do in words."""
    call, function = outer.node, outer.function
    parts = [] if call is None else [one for one in ast.walk(call) if _is_part(one, loop, function)]
    name = next((one for one in _NAMES if not function.knows(one)), _NAMES[-1])
    if call is None or len(parts) != 1 or not isinstance(parts[0], ast.Subscript):
        return (
            "Compute the output of the model for each sample once, before this loop, and keep it "
            "in one tensor, in the order of the samples. In the loop, take the rows of a batch "
            "from this tensor instead of calling the model."
        )
    old, data = ast.unparse(call), ast.unparse(parts[0].value)
    new = old.replace(ast.unparse(parts[0]), "part")
    code = f"with torch.no_grad():\n    {name} = torch.cat([{new} for part in {data}.split(256)])"
    rows = ast.unparse(parts[0].slice)
    return (
        f"Before this loop, write `{code}`. In the loop, write `{name}[{rows}]` instead of `{old}`."
    )


def _is_part(node: ast.AST, loop: Loop, function: Function) -> bool:
    """Return whether an expression takes some rows of a tensor that a loop does not change."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Name() | ast.Slice()):
            given = function.assigned.get(name, ())
            return not any(loop.line <= one.line <= loop.last for one in given)
    return False
