"""Finds loops over all keys of a sorted store that use only the keys with one prefix.

LMDB and LevelDB keep their keys sorted: the keys with a prefix are neighbours. The store can jump
to the first of them, and the loop can end after the last one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function
from teho.source.slow_calls.loop_parts import names_in
from teho.source.stack import Level

__all__ = ["find_prefix_scan"]

_METHODS = frozenset(("cursor", "iternext"))


class _Scan(NamedTuple):
    """A loop over all keys."""

    loop: ast.For
    key: str
    prefix: str
    test: ast.If


def find_prefix_scan(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the loop on a stack that goes through all keys for those with a prefix; None: none.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    if "lmdb" not in _imported(level.function):
        return None
    line = level.frame.line
    for node in level.function.nodes:
        scan = _scan(node, level.function) if isinstance(node, ast.For) else None
        if scan is not None and scan.loop.lineno <= line <= (scan.test.test.end_lineno or 0):
            return _found(scan, level)
    return None


def _imported(function: Function) -> frozenset[str]:
    return frozenset(name for one in function.module.every() for name in one.imports.values())


def _scan(loop: ast.For, function: Function) -> _Scan | None:
    """Return the scan that a loop is; None: it uses other keys too."""
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    key = targets[0]
    if not isinstance(key, ast.Name) or loop.orelse or _cursor(loop, function) is None:
        return None
    first, *others = loop.body
    if not isinstance(first, ast.If) or first.orelse:
        return None
    test = first.test
    is_skipped = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if isinstance(test, ast.UnaryOp) and is_skipped:
        test = test.operand
        if len(first.body) != 1 or not isinstance(first.body[0], ast.Continue):
            return None
    elif others:
        return None
    match test:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="startswith"), args=[prefix]
        ) if name == key.id:
            bound = {
                node.id
                for node in ast.walk(loop)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            is_fixed = not names_in(prefix) & bound and not isinstance(prefix, ast.Tuple)
            return _Scan(loop, name, ast.unparse(prefix), first) if is_fixed else None
    return None


def _cursor(loop: ast.For, function: Function) -> ast.expr | None:
    """Return the cursor over whose keys a loop goes; None: it is none, or has a position."""
    items: ast.expr = loop.iter
    match items:
        case ast.Call(func=ast.Attribute(value=inner, attr="iternext")):
            items = inner
    if isinstance(items, ast.Name):
        uses = [
            one
            for one in function.nodes
            if isinstance(one, ast.Attribute)
            and isinstance(one.value, ast.Name)
            and one.value.id == items.id
            and one.attr not in _METHODS
        ]
        found = assigned_value(items.id, function)
        items = found[0] if found is not None and not uses else items
    match items:
        case ast.Call(func=ast.Attribute(attr="cursor")):
            return items
    return None


def _found(scan: _Scan, level: Level) -> CostlyOption:
    file, frame, loop = level.file, level.frame, scan.loop
    cursor = _cursor(loop, level.function)
    walk = "cursor"
    match loop.iter:
        case ast.Call(func=ast.Attribute(attr="iternext"), args=arguments, keywords=words):
            method = ast.Attribute(ast.Name("cursor", ast.Load()), "iternext", ast.Load())
            walk = ast.unparse(ast.Call(method, arguments, words))
    target = ast.unparse(loop.target).strip("()")
    text = file.line_text(loop.lineno).rstrip(":")
    return CostlyOption(
        name="keys_scanned_for_prefix",
        at=Frame(frame.file, frame.function, loop.lineno, text),
        lines=(frame,),
        words={
            "cursor": f"cursor = {ast.unparse(cursor) if cursor is not None else ''}",
            "loop": f"for {target} in {walk} if cursor.set_range({scan.prefix}) else ():",
            "test": f"if not {scan.key}.startswith({scan.prefix}): break",
            "line": str(scan.test.lineno),
        },
    )
