"""The functions of the program on a stack, as the source has them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from teho.model.stack import Frame, is_library
from teho.patterns import lazy_pattern
from teho.source.parsed import COMPREHENSIONS, Function, Loop, SourceFile, root_name
from teho.source.program import Place, Program

__all__ = ["TIMES", "Level", "argument", "levels_of"]

TIMES = lazy_pattern(r"\b(perf_counter|timeit|monotonic|process_time|time\.time|default_timer)\b")
"""Functions that a program calls to measure how long some code takes."""
_CONTEXT_LINES = 2
"""Lines before and after a call in which its time is taken."""

_NEXT = lazy_pattern(r"(^|\.)(__next__|_next_data|_next_index)$")
"""Functions of libraries that get the next item of a loop."""
_CALLS_AGAIN = lazy_pattern(
    r"/torch/utils/data/|/torch/nn/modules/module\.py|/datasets/\w+\.py|/tensorflow/python/"
    r"|/grain/|/scipy/(optimize|integrate)/|/pandas/core/|/multiprocessing/pool\.py"
    r"|/concurrent/futures/process\.py|/joblib/|/loky/|/lightning|/transformers/|/keras/"
)
"""Libraries that call a function of the program again and again, such as for each sample."""
_FORWARDS = lazy_pattern(r"/torch/nn/(modules/module|parallel/distributed)\.py$")
"""Files whose functions give their arguments to `forward` as they are."""
_INNER = lazy_pattern(r"<(list|set|dict)comp>$|<genexpr>$|<lambda>$")


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
    is_forward: bool = False
    """Whether it is the `forward` of a module of PyTorch that the level before calls: `model(x)`
    gives its arguments to `forward`."""

    @property
    def function(self) -> Function:
        """The function."""
        return self.place.function

    @property
    def is_called_again(self) -> bool:
        """Whether a library calls the function again and again."""
        return _CALLS_AGAIN.search(self.caller) is not None

    @property
    def is_measured(self) -> bool:
        """Whether the program measures the time of the line: it may be repeated for this."""
        line = self.frame.line
        before = self.file.lines[max(0, line - 1 - _CONTEXT_LINES) : line - 1]
        after = self.file.lines[line : line + _CONTEXT_LINES]
        return all(
            any(TIMES.search(one.decode("utf-8", "replace")) for one in lines)
            for lines in (before, after)
        )

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
            return not _ends(loop.node.body)
        whole = loop.node
        if self.node is None or not isinstance(whole, COMPREHENSIONS):
            return False
        first = set(ast.walk(whole.generators[0].iter))
        return self.node not in first and self.node in ast.walk(whole)


def levels_of(frames: Sequence[Frame], program: Program) -> list[Level]:
    """Return the program's functions on a stack, the outermost first."""
    levels: list[Level] = []
    between: list[str] = []
    for place in range(len(frames) - 1, -1, -1):
        frame = frames[place]
        if is_library(frame.file) or frame.file.startswith("<"):
            between.append(frame.file)
            continue
        file = program.file(frame.file)
        if file is None or not 0 < frame.line <= len(file.lines):
            return []  # what happens in this function is not known
        inner = frames[place - 1] if place else None
        function, node = file.function_at(frame.line), file.active(frame.line, frame.text)
        if inner is None and file.changes_in_place(frame.line, frame.text):
            node = None  # the operation takes the time, and not the call in its value
        if isinstance(node, ast.Await):
            node = node.value
        if frame.function.endswith("<lambda>") and node is not None:
            function = file.lambda_around(node) or function
        level = Level(
            frame,
            Place(frame.file, function),
            file,
            node,
            between[-1] if between else "",
            inner is not None and _gets_next(inner, program),
            function.name == "forward" and bool(between) and all(map(_FORWARDS.search, between)),
        )
        if levels and _INNER.search(frame.function) and levels[-1].function is function:
            levels.pop()
        levels.append(level)
        between = []
    return levels


def argument(levels: Sequence[Level], number: int, name: str) -> ast.expr | None:
    """Return the expression that the level before gives for a parameter; None if it is not clear.

    Args:
        levels: the program's functions on a stack, the outermost first.
        number: the number of the level with the parameter.
        name: the parameter.
    """
    call, function = levels[number - 1].node if number else None, levels[number].function
    if not isinstance(call, ast.Call) or levels[number].caller:
        return None
    target = call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
    if target != function.name:
        return None
    # In `scan(link, *angles)`, only the parameters before the star are clear.
    placed = takewhile(lambda one: not isinstance(one, ast.Starred), call.args)
    given = dict(zip(function.params_of_call, placed, strict=False))
    return given.get(name) or next((w.value for w in call.keywords if w.arg == name), None)


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Return whether the body of a loop ends the loop in its first iteration.

    A loop that tries something again after an error does the same.
    """
    last = body[-1]
    if isinstance(last, ast.Try):
        return _ends(last.orelse or last.body)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return _ends(last.body)
    return isinstance(last, (ast.Break, ast.Return, ast.Raise))


def _gets_next(inner: Frame, program: Program) -> bool:
    if is_library(inner.file):
        return _NEXT.search(inner.function) is not None
    file = program.file(inner.file)
    if file is None or inner.line < 1:
        return False
    function = file.function_at(inner.line)
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in function.nodes)
