"""Finds loops that take one event after the other from a heap, as simulations of events do.

Each event may change the events after it. The rule `python_bound` does not advise NumPy for them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value, name_of
from teho.source.parsed import Loop
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_events"]

_POPS = "heapq.heappop"
_PUSHES = "heapq.heappush"


def find_events(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the loop over events that executes the innermost line; None: there is none.

    The line must be executed about once for each event: there is no other loop between.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files.
    """
    inside = next((level for level in reversed(levels) if level.loops()), None)
    if inside is None:
        return None
    loop = inside.loops()[-1]
    if not isinstance(loop.node, ast.While) or not _takes_events(loop, inside.place, program):
        return None
    frame, innermost = inside.frame, levels[-1].frame
    at = Frame(frame.file, frame.function, loop.line, inside.file.line_text(loop.line).rstrip(":"))
    return CostlyOption(name="events_in_turn", at=at, lines=(innermost,))


def _takes_events(loop: Loop, place: Place, program: Program) -> bool:
    """Return whether a loop takes elements from a heap to which the same file adds elements."""
    inside = program.all_nodes(loop.node, getattr(loop.node, "body", []))
    if not any(_calls(node, _POPS, place, program) for node in inside):
        return False
    path = place.path
    return any(
        _calls(node, _PUSHES, Place(path, function), program)
        for function in place.function.module.every()
        for node in function.nodes
    )


def _calls(node: ast.AST, name: str, place: Place, program: Program) -> bool:
    """Return whether a node calls a function of a library, also by another name: `pop(events)`."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    found = assigned_value(function.id, place.function) if isinstance(function, ast.Name) else None
    if found is None:
        return name_of(function, place, program) == name
    value, outer = found
    return name_of(value, Place(place.path, outer), program) == name
