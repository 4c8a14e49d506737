"""Finds lazy tables that a loop computes again in each iteration.

A lazy table, such as that of `pl.scan_csv(path)`, is only a plan: each `collect()` reads the file
again. If a program makes the plan before a loop and collects it in the loop, the loop repeats the
begin of the plan, even if each iteration selects other rows at its end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import RepeatedPlan
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.inputs import Value
from teho.source.outside import changes_outside
from teho.source.parsed import Loop, root_name
from teho.source.plans.follow import Begin, Follower, Scope
from teho.source.plans.libraries import MEMORY, libraries
from teho.source.purity import Purity
from teho.source.stack import Level, levels_of

__all__ = ["find_plan"]

_LEAST_ITERATIONS = 3
"""With two iterations, at most half of the time could be saved."""


def find_plan(frames: Sequence[Frame], purity: Purity) -> RepeatedPlan | None:
    """Return the call on a stack that computes a lazy plan again in each iteration of a loop.

    Of several loops, the outermost one. None: there is no such call, or this is not certain.

    Args:
        frames: the stack, innermost frame first.
        purity: the program.
    """
    levels = levels_of(frames, purity.program)
    for number, level in enumerate(levels):
        if level.is_measured:
            break
        for method, node in _computed(level, purity):
            for at, loop in _loops(levels[: number + 1]):
                follower = Follower(levels, at, loop, purity)
                scope = Scope(level.place, number)
                begin = follower.follow(node, scope, level.frame.line, is_inside=True)
                if begin is None or method not in begin.library.computes:
                    continue
                may_change = begin.function != MEMORY and _may_change_files(
                    levels[at], loop, purity
                )
                if _is_again(follower, begin) and not may_change:
                    return _plan(levels, number, at, loop, follower, begin)
    return None


def _loops(levels: Sequence[Level]) -> Iterator[tuple[int, Loop]]:
    """Yield the loops around a stack, the outermost first, each with its level."""
    for at, level in enumerate(levels):
        if level.is_called_again:
            yield at, level.as_loop()
        for loop in level.loops():
            if may_iterate(loop, level.function, _LEAST_ITERATIONS):
                yield at, loop


def _computed(level: Level, purity: Purity) -> Iterator[tuple[str, ast.expr]]:
    """Yield the expressions that may be plans and that a line computes, each with its method."""
    computes = frozenset[str]().union(*(one.computes for one in libraries().values()))
    for node in ast.walk(level.node) if level.node is not None else ():
        if not isinstance(node, ast.Call):
            continue
        method = node.func
        name = method.attr if isinstance(method, ast.Attribute) else root_name(method)
        if name not in computes:
            continue
        if isinstance(purity.program.called(node, level.place), str):  # `dask.compute(a, b)`
            yield from ((name, one) for one in node.args)
        elif isinstance(method, ast.Attribute):
            yield name, method.value


def _is_again(follower: Follower, begin: Begin) -> bool:
    """Return whether each iteration certainly computes the same begin of a plan."""
    library = begin.library
    inside = {step.name for step in follower.steps if step.is_inside}
    steps = {step.name for step in follower.steps}
    if steps & (library.computes | library.keeps | library.parts) or inside & library.others:
        return False
    is_whole = library.reads_whole(begin.function)
    if follower.kept is not None:
        return is_whole or _needs_all_rows(follower, begin)
    made = follower.inside
    return is_whole and made is not None and follower.value_of(*made) is Value.SAME


def _needs_all_rows(follower: Follower, begin: Begin) -> bool:
    """Return whether a step before the loop needs all rows, whatever the loop selects.

    If this step keeps groups of rows separate, a library may select groups before it.
    """
    selected = {name for step in follower.steps if step.is_inside for name in step.columns}
    return any(
        begin.library.needs_all_rows(step.text) and not selected & step.columns
        for step in follower.steps
        if not step.is_inside
    )


def _may_change_files(level: Level, loop: Loop, purity: Purity) -> bool:
    """Return whether a loop may write files, or wait until others change them."""
    node = loop.node
    nodes = node.body if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) else [node]
    return changes_outside(nodes, level.place, purity.program)


def _plan(
    levels: Sequence[Level], number: int, at: int, loop: Loop, follower: Follower, begin: Begin
) -> RepeatedPlan:
    outer = levels[at]
    text, kept = follower.kept or ("", None)
    if follower.kept is None and follower.inside is not None:
        text = ast.unparse(follower.inside[1])
    return RepeatedPlan(
        calls=tuple(level.frame for level in levels[: number + 1]),
        loop=Frame(
            outer.frame.file,
            outer.frame.function,
            loop.line,
            outer.file.line_text(loop.line).rstrip(":"),
        ),
        last=loop.last,
        library=begin.library.name,
        text=text,
        made=begin.line,
        kept=kept,
        reads_text=begin.library.reads_whole(begin.function),
        is_inside=follower.kept is None,
    )
