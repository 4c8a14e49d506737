"""Finds JPEG files that are decoded in full size, although the program only uses small copies.

The decoder of JPEG can make an image of a half, a quarter or an eighth of the size in much less
time. The source shows the size of the copy, and that nothing else is done with the large image.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, root_name
from teho.source.program import Place, Program
from teho.source.stack import Level, argument

__all__ = ["find_large_image"]

_OPEN = "PIL.Image.open"
_JPEG = lazy_pattern(rb"\.jpe?g\b|[\"']jpe?g\b", re.IGNORECASE)
_LARGEST = 160
"""A photograph that is 4 times as large in each direction has 640 pixels: almost all have more."""
_SAME_IMAGE = frozenset(("convert", "copy"))
_HARMLESS = frozenset(("close", "format", "filename", "info", "mode"))
"""Attributes of an image that are the same in a smaller image."""
_DEEPEST = 8


class _Copy(NamedTuple):
    """A small copy of an image in a file."""

    opened: ast.Call
    name: str
    """The name that the opened image gets; empty: it has none."""
    mode: str
    calls: tuple[ast.Call, ...]
    """The calls from the opened image to the copy."""


def find_large_image(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the line on a stack that makes a small copy of a JPEG file decoded in full size.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """
    level = levels[-1]
    if not any(_JPEG.search(line) for one in levels for line in one.file.lines):
        return None
    for node in level.function.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=image, attr="resize" | "thumbnail" as method)):
                size = _size(node, levels)
                copy = _copy(image, level.place, program) if size is not None else None
            case _:
                continue
        if size is None or copy is None or (method == "thumbnail" and not copy.calls[1:]):
            continue  # without `convert`, `thumbnail` asks the decoder for a small image itself
        calls = (*copy.calls, node)
        line = level.frame.line
        is_in = any(one.lineno <= line <= (one.end_lineno or 0) for one in calls)
        if is_in and _is_only_for(copy, calls, level.function):
            return _found(level, node, copy, size)
    return None


def _size(call: ast.Call, levels: Sequence[Level]) -> tuple[int, int] | None:
    """Return the size of a copy; None: it is not in the source, or it is large."""
    given: ast.expr | None = (
        call.args[0]
        if call.args
        else next((word.value for word in call.keywords if word.arg == "size"), None)
    )
    function = levels[-1].function
    if isinstance(given, ast.Name):
        found = assigned_value(given.id, function) or _passed(given.id, levels)
        given, function = found if found is not None else (given, function)
    if not isinstance(given, (ast.Tuple, ast.List)) or len(given.elts) != 2:
        return None
    sides = [_number(one, function) for one in given.elts]
    width, height = sides
    if width is None or height is None or not 0 < max(width, height) <= _LARGEST:
        return None
    return width, height


def _passed(name: str, levels: Sequence[Level]) -> tuple[ast.expr, Function] | None:
    """Return what the innermost function gets for a parameter, or the default value of it."""
    number, level = len(levels) - 1, levels[-1]
    function = level.function
    call = levels[number - 1].node if number and not level.caller else None
    if not isinstance(call, ast.Call) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if name not in function.params_of_call or name in function.assigned:
        return None
    given = argument(levels, number, name)
    if given is not None:
        return given, levels[number - 1].function
    called = call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
    is_plain = called == function.name and all(word.arg for word in call.keywords)
    default = function.default(name) if is_plain else None
    return (default, function) if default is not None else None


def _number(node: ast.expr, function: Function) -> int | None:
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, function)
        node = found[0] if found is not None else node
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int else None


def _copy(image: ast.expr, place: Place, program: Program, depth: int = 0) -> _Copy | None:
    """Return how an image was opened; None: not with Pillow, or it is changed before."""
    if depth > _DEEPEST:
        return None
    match image:
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _SAME_IMAGE:
            copy = _copy(inner, place, program, depth + 1)
            if copy is None:
                return None
            first = image.args[0] if image.args else None
            mode = first.value if isinstance(first, ast.Constant) else None
            is_gray = method == "convert" and mode == "L"
            return copy._replace(mode="L" if is_gray else copy.mode, calls=(*copy.calls, image))
        case ast.Call() if program.called(image, place) == _OPEN:
            return _Copy(image, "", "RGB", (image,))
        case ast.Name(id=name):
            given = [one for one in place.function.assigned.get(name, []) if one.value is not None]
            before = [one for one in given if one.line < image.lineno]
            value = before[-1].value if before and before[-1].loop is None else None
            if value is None or name in place.function.params:
                return None
            copy = _copy(value, place, program, depth + 1)
            is_opened = copy is not None and copy.opened is value
            return copy._replace(name=name) if copy is not None and is_opened else copy
    return None


def _is_only_for(copy: _Copy, calls: Sequence[ast.Call], function: Function) -> bool:
    """Return whether nothing but these calls uses the large image."""
    last = calls[-1]
    inside = {id(node) for one in calls for node in ast.walk(one)}
    names = {copy.name} | {
        target.id
        for node in function.nodes
        if isinstance(node, ast.Assign) and node.value in calls[:-1]
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    new = {
        target.id
        for node in function.nodes
        if isinstance(node, ast.Assign) and node.value is last
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if isinstance(last.func, ast.Attribute) and last.func.attr == "thumbnail":
        new.add(root_name(last.func.value))  # it changes its image
    harmless = {
        id(node.value)
        for node in function.nodes
        if isinstance(node, ast.Attribute) and node.attr in _HARMLESS
    }
    for node in function.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        if node.id not in names or id(node) in inside | harmless:
            continue
        if not (node.id in new and node.lineno > last.lineno):
            return False
    return True


def _found(level: Level, last: ast.Call, copy: _Copy, size: tuple[int, int]) -> CostlyOption:
    frame, file = level.frame, level.file
    width, height = size
    words = {
        "opened": ast.unparse(copy.opened),
        "image": copy.name or "image",
        "mode": copy.mode,
        "least": f"({2 * width}, {2 * height})",
        "large": f"{4 * width} × {4 * height}",
    }
    method = last.func.attr if isinstance(last.func, ast.Attribute) else ""
    arguments = ", ".join(file.text_of(one) for one in last.args[:1])
    return CostlyOption(
        name="large_images_decoded" if copy.name else "large_images_decoded_at_once",
        at=Frame(frame.file, frame.function, last.lineno, f"{method}({arguments})"),
        lines=(frame,),
        words=words,
    )
