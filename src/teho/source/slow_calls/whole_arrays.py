"""Finds lines that work on whole arrays already.

The rule `python_bound` does not advise NumPy for them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.arrays import Shapes, elements
from teho.source.options.uses import name_of
from teho.source.program import Program
from teho.source.stack import Level

__all__ = ["find_whole_arrays"]

_LEAST = 100
"""With fewer elements, most of the time of a call is not spent on the elements."""


def find_whole_arrays(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the line of the innermost function, if it works on a whole array; None: it may not.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files.
    """
    number = len(levels) - 1
    level = levels[number]
    shapes = Shapes(levels, program)
    if not any(elements(shapes.of(number, one)) >= _LEAST for one in _worked_on(level, program)):
        return None
    frame, line = level.frame, getattr(level.function.node, "lineno", 1)
    at = Frame(frame.file, frame.function, line, level.file.line_text(line))
    return CostlyOption(name="whole_arrays", at=at, lines=(frame,))


def _worked_on(level: Level, program: Program) -> list[ast.expr]:
    """Return expressions of which one is an array if the active line works on an array."""
    node = level.node
    match node:
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.Subscript():
            return [node]
        case ast.Call(func=function, args=arguments):
            name = name_of(function, level.place, program)
            if name.startswith("numpy."):
                return [node, *arguments]
            if name.startswith(".") and isinstance(function, ast.Attribute):
                return [node, function.value]
            return []
        case None:
            return [
                one.target
                for one in level.function.nodes
                if isinstance(one, ast.AugAssign)
                and one.lineno == level.frame.line
                and level.file.changes_in_place(one.lineno, level.frame.text)
            ]
    return []
