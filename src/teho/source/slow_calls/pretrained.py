"""Finds models of Transformers that a loop loads again, only to apply them.

`AutoModel.from_pretrained(folder)` in a function that is called for each text reads the weights
and makes all layers again. A model that is not trained stays the same: one is enough.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.inputs import Inputs, Value
from teho.source.parsed import root_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_pretrained_again"]

_LIBRARY = re.compile(r"(transformers|sentence_transformers|diffusers)\.")
_TRAINS = re.compile(
    rb"\.backward\(|\bTrainer\(|\bTrainingArguments\(|\boptim\b|\.train\(|\boptimizer\b|\bpeft\b"
)
"""Code of a training: each pass of a loop, such as each fold, may need new weights."""
_LEAST = 3


def find_pretrained_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that loads the same weights in each pass of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    number = len(levels) - 1
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    called = purity.program.called(call, level.place)
    if not isinstance(called, str) or not called.endswith(".from_pretrained"):
        return None
    texts = (b"\n".join(one.file.lines) for one in levels)
    if not _LIBRARY.match(called) or any(map(_TRAINS.search, texts)):
        return None
    inputs = ast.Tuple(elts=[*call.args, *(one.value for one in call.keywords)], ctx=ast.Load())
    changed = [*levels[:-1], level._replace(node=inputs)]
    for at, outer in enumerate(levels):
        for loop in outer.loops():
            is_same = Inputs(changed, at, loop, purity).of_call(number) is Value.SAME
            if is_same and may_iterate(loop, outer.function, _LEAST):
                frame, place = level.frame, outer.frame
                return CostlyOption(
                    name="model_loaded_again",
                    at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
                    lines=(frame,),
                    words={
                        "code": f"{_target(level, call)} = {ast.unparse(call)}",
                        "loop": f"{place.file.rpartition('/')[2]}:{loop.line}",
                        "function": level.function.name or "the function",
                    },
                )
    return None


def _target(level: Level, call: ast.Call) -> str:
    """Return the name that gets the model."""
    for one in level.function.nodes:
        if (
            isinstance(one, ast.Assign)
            and call in ast.walk(one.value)
            and root_name(one.targets[0])
        ):
            return root_name(one.targets[0])
    return "model"
