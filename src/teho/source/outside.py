"""What the calls of a program have to do with files, devices and other programs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from teho.source.known import fits, known
from teho.source.parsed import root_name
from teho.source.program import Place, Program

__all__ = ["changes_outside", "is_loader", "reads_files"]


def reads_files(node: ast.AST, at: Place, program: Program) -> bool:
    """Return whether code may read a file; the file may have other content later."""
    return _calls_any([node], at, "readers", program, set())


def changes_outside(nodes: Iterable[ast.AST], at: Place, program: Program) -> bool:
    """Return whether code may change files, or waits until others change them."""
    return _calls_any(nodes, at, "outside", program, set())


def _calls_any(
    nodes: Iterable[ast.AST], at: Place, kind: str, program: Program, seen: set[int]
) -> bool:
    """Return whether code calls a function of a kind, also in functions that it calls."""
    calls = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(_calls(one, at, kind, program, seen) for one in calls)


def _calls(call: ast.Call, at: Place, kind: str, program: Program, seen: set[int]) -> bool:
    called = program.called(call, at)
    if isinstance(called, str):
        return fits(kind, called)
    if isinstance(called, Place):
        key = id(called.function.node)
        if key in seen:
            return False
        seen.add(key)
        return _calls_any(called.function.body, called, kind, program, seen)
    method = call.func
    if not isinstance(method, ast.Attribute) or not root_name(method):
        return False
    return method.attr in getattr(known().methods, kind)


def is_loader(node: ast.AST | None, at: Place, program: Program) -> bool:
    """Return whether an expression reads a file as it is, by a function of a library."""
    if not isinstance(node, ast.Call):
        return False
    called = program.called(node, at)
    if isinstance(called, str):
        return fits("loaders", called)
    method = node.func
    return isinstance(method, ast.Attribute) and method.attr in known().methods.loaders
