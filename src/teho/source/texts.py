"""The text that an expression of a program makes, as far as the source has it."""

from __future__ import annotations

import ast

from teho.patterns import lazy_pattern
from teho.source.parsed import Function

__all__ = ["UNKNOWN", "made_text"]

UNKNOWN = "\0"
"""Represents a part of a text that is not in the program's source."""
_KEEP = frozenset(("text", "SQL", "dedent", "cleandoc", "strip", "str"))
"""Functions and methods whose result has the same text."""
_DEEPEST = 6
_PLACEHOLDER = lazy_pattern(r"%[-+ #0]*\d*(?:\.\d+)?[sdifgr]|%\(\w+\)[sdifgr]")
_FIELD = lazy_pattern(r"\{[^{}]*\}")


def made_text(node: ast.expr, function: Function, depth: int = 0) -> str:
    """Return the text of an expression; unknown parts are `UNKNOWN`.

    Args:
        node: the expression.
        function: the function that it is in.
        depth: how many names lead to the expression.
    """
    match node:
        case ast.Constant():
            return str(node.value) if isinstance(node.value, (str, int, float)) else UNKNOWN
        case ast.JoinedStr():
            return "".join(made_text(one, function, depth) for one in node.values)
        case ast.FormattedValue():
            return made_text(node.value, function, depth)
        case ast.BinOp(op=ast.Add()):
            return "".join(made_text(one, function, depth) for one in _added(node))
        case ast.BinOp(op=ast.Mod()):
            left = made_text(node.left, function, depth)
            return _PLACEHOLDER.sub(UNKNOWN, left).replace("%%", "%")
        case ast.Call(func=ast.Attribute(pattern, "format")):
            return _FIELD.sub(UNKNOWN, made_text(pattern, function, depth))
        case ast.Call():
            return _of_call(node, function, depth)
        case ast.Name() if depth < _DEEPEST:
            return _of_name(node.id, function, depth)
        case ast.Attribute(ast.Name(id=owner), name):
            return _of_class(owner, name, function)
    return UNKNOWN


def _added(node: ast.expr) -> list[ast.expr]:
    """Return the parts of `a + b + c`."""
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.append(node.right)
        node = node.left
    return [node, *reversed(parts)]


def _of_call(call: ast.Call, function: Function, depth: int) -> str:
    called = call.func
    if isinstance(called, ast.Attribute) and called.attr in _KEEP and not call.args:
        return made_text(called.value, function, depth)
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    is_kept = name in _KEEP and bool(call.args)
    return made_text(call.args[0], function, depth) if is_kept else UNKNOWN


def _of_name(name: str, function: Function, depth: int) -> str:
    outer: Function | None = function
    while outer is not None and not outer.knows(name):
        outer = outer.parent
    if outer is None:
        return UNKNOWN
    given = outer.assigned.get(name, [])
    is_clear = len(given) == 1 and name not in outer.params and given[0].loop is None
    value = given[0].value if is_clear else None
    return made_text(value, outer, depth + 1) if value is not None else UNKNOWN


def _of_class(owner: str, name: str, function: Function) -> str:
    """Return the text of an attribute that the body of a class gives a value."""
    own = function.owner
    module = function.module
    node = own if owner in ("self", "cls") and own is not None else module.classes.get(owner)
    given = [
        one.value
        for one in (node.body if node is not None else ())
        if isinstance(one, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
    ]
    return made_text(given[0], module) if len(given) == 1 else UNKNOWN
