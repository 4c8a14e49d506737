"""The functions of the program on a stack, as the source has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.watched import Frame, is_library
from teho.source.parsed import COMPREHENSIONS, Function, Loop, SourceFile
from teho.source.program import Place, Program

__all__ = ["Level", "levels_of"]

_NEXT = re.compile(r"(^|\.)(__next__|_next_data|_next_index)$")
"""Functions of libraries that get the next item of a loop."""
_CALLS_AGAIN = re.compile(
    r"/torch/utils/data/|/torch/nn/modules/module\.py|/datasets/\w+\.py|/tensorflow/python/"
    r"|/grain/|/scipy/(optimize|integrate)/|/pandas/core/|/multiprocessing/pool\.py"
    r"|/concurrent/futures/process\.py|/joblib/|/loky/|/lightning|/transformers/|/keras/"
)
"""Libraries that call a function of the program again and again, such as for each sample."""
_INNER = re.compile(r"<(list|set|dict)comp>$|<genexpr>$|<lambda>$")


class Level(NamedTuple):
    """A function of the program on a stack."""

    frame: Frame
    place: Place
    file: SourceFile
    node: ast.expr | None
    """What it executes."""
    caller: str
    """File of the library that called the function; empty if the level before called it."""
    gets_next: bool
    """Whether it waits for the next item of the loop whose first line it executes."""

    @property
    def function(self) -> Function:
        """The function."""
        return self.place.function

    @property
    def is_called_again(self) -> bool:
        """Whether a library calls the function again and again."""
        return _CALLS_AGAIN.search(self.caller) is not None

    def as_loop(self) -> Loop:
        """Return a loop around the calls of the function."""
        node = self.function.node
        last = getattr(node, "end_lineno", 0) or 0
        return Loop(node, getattr(node, "lineno", 0), 0, last, None)

    def loops(self) -> list[Loop]:
        """Return the loops that it is in, the outermost first."""
        line = self.frame.line
        found = [loop for loop in self.function.loops_at(line) if self._is_inside(loop)]
        if self.gets_next:
            found += [one for one in self.function.loops if one.line == line and one.is_statement]
        return found

    def _is_inside(self, loop: Loop) -> bool:
        if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While)):
            # A loop that ends in its first iteration is none.
            return not isinstance(loop.node.body[-1], (ast.Break, ast.Return, ast.Raise))
        whole = loop.node
        if self.node is None or not isinstance(whole, COMPREHENSIONS):
            return False
        first = set(ast.walk(whole.generators[0].iter))
        return self.node not in first and self.node in ast.walk(whole)


def levels_of(frames: Sequence[Frame], program: Program) -> list[Level]:
    """Return the program's functions on a stack, the outermost first."""
    levels: list[Level] = []
    caller = ""
    for place in range(len(frames) - 1, -1, -1):
        frame = frames[place]
        if is_library(frame.file) or frame.file.startswith("<"):
            caller = frame.file
            continue
        file = program.file(frame.file)
        if file is None or not 0 < frame.line <= len(file.lines):
            return []  # what happens in this function is not known
        inner = frames[place - 1] if place else None
        function = file.function_at(frame.line)
        level = Level(
            frame,
            Place(frame.file, function),
            file,
            file.active(frame.line, frame.text),
            caller,
            inner is not None and _gets_next(inner, program),
        )
        if levels and _INNER.search(frame.function) and levels[-1].function is function:
            levels.pop()
        levels.append(level)
        caller = ""
    return levels


def _gets_next(inner: Frame, program: Program) -> bool:
    if is_library(inner.file):
        return _NEXT.search(inner.function) is not None
    file = program.file(inner.file)
    if file is None or inner.line < 1:
        return False
    function = file.function_at(inner.line)
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in function.nodes)
