"""Finds image files that each iteration of a loop decodes again.

Pillow decodes a file when a method needs its pixels. So `Image.open(path).crop(box)` decodes the
whole file for each box. The source shows that all iterations open the same file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_picture_decoded_again"]

_OPEN = "PIL.Image.open"
_KEEPS = frozenset(
    (
        *("crop", "convert", "resize", "rotate", "transpose", "transform", "filter", "getbbox"),
        *("getpixel", "getcolors", "getdata", "getextrema", "histogram", "split", "point", "size"),
        *("copy", "tobytes", "reduce", "quantize", "width", "height", "mode", "close", "entropy"),
        *("getchannel", "effect_spread", "info", "format", "get_flattened_data"),
    )
)
"""Attributes of an image, and methods that do not change it."""
_CONVERTS = frozenset(("asarray", "array", "fromiter", "pil_to_tensor", "to_tensor"))
_LEAST = 3
"""With fewer iterations, decoding once saves little."""


class _Opened(NamedTuple):
    """An image that a function opens."""

    call: ast.Call
    name: str
    """Its name in the function; empty: it has none."""


def find_picture_decoded_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that opens the same image in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    opened = _opened(level, purity) if level.node is not None else None
    if opened is None or not _is_kept(opened, level):
        return None
    number = len(levels) - 1
    changed = [*levels[:-1], level._replace(node=ast.Tuple(elts=opened.call.args, ctx=ast.Load()))]
    for at in range(number, -1, -1):
        for loop in reversed(levels[at].loops()):
            is_around = at < number or loop.first <= opened.call.lineno <= loop.last
            if not is_around or not may_iterate(loop, levels[at].function, _LEAST):
                continue
            if Inputs(changed, at, loop, purity).of_call(number) is not Value.SAME:
                return None
            if at == number and _is_written(opened, loop):
                return None
            if _is_repeated(levels, at, loop, purity):
                return None  # the rule work_repeated says more
            return _found(opened, level, levels[at], loop)
        if levels[at].caller:
            return None
    return None


def _is_repeated(levels: Sequence[Level], at: int, loop: Loop, purity: Purity) -> bool:
    """Return whether the whole expression gives the same result in each iteration."""
    level = levels[-1]
    if not isinstance(level.node, ast.Call) or not purity.is_pure(level.node, level.place):
        return False
    return Inputs(levels, at, loop, purity).of_call(len(levels) - 1) is Value.SAME


def _opened(level: Level, purity: Purity) -> _Opened | None:
    """Return the image whose pixels a line uses; None if the line does not use one."""
    for node in ast.walk(level.node) if level.node is not None else ():
        if isinstance(node, ast.Call) and _opens(node, level.place, purity):
            return _Opened(node, "")
        if isinstance(node, ast.Name):
            given = level.function.assigned.get(node.id, [])
            value = given[0].value if len(given) == 1 and given[0].loop is None else None
            if isinstance(value, ast.Call) and _opens(value, level.place, purity):
                return _Opened(value, node.id)
    return None


def _opens(call: ast.Call, place: Place, purity: Purity) -> bool:
    is_plain = len(call.args) == 1 and not call.keywords
    return is_plain and purity.program.called(call, place) == _OPEN


def _is_kept(opened: _Opened, level: Level) -> bool:
    """Return whether a function only reads an image: it may be the same in the next iteration."""
    if not opened.name:
        return True
    fine = {id(one) for one in _only_reads(opened.name, level)}
    return all(
        id(node) in fine
        for node in level.function.nodes
        if isinstance(node, ast.Name) and node.id == opened.name and isinstance(node.ctx, ast.Load)
    )


def _only_reads(name: str, level: Level) -> Iterator[ast.AST]:
    """Yield the places that use an image and do not change it."""
    for node in level.function.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=found) as used, attr=attribute):
                if found == name and attribute in _KEEPS:
                    yield used
            case ast.Call(func=ast.Attribute(attr=function), args=[ast.Name(id=found) as used, *_]):
                if found == name and function in _CONVERTS:
                    yield used


def _is_written(opened: _Opened, loop: Loop) -> bool:
    """Return whether the loop gives the name of the file to other calls: they may change it."""
    path = ast.unparse(opened.call.args[0])
    return any(
        isinstance(node, ast.Call)
        and node is not opened.call
        and any(ast.unparse(one) == path for one in node.args)
        for node in ast.walk(loop.node)
    )


def _found(opened: _Opened, level: Level, outer: Level, loop: Loop) -> CostlyOption:
    frame = level.frame
    text = ast.unparse(opened.call)
    is_here = outer is level
    return CostlyOption(
        name="picture_decoded_again" if is_here else "picture_decoded_by_calls",
        at=Frame(frame.file, frame.function, opened.call.lineno, text),
        lines=(frame,),
        words={
            "opened": text,
            "path": ast.unparse(opened.call.args[0]),
            "open": ast.unparse(opened.call.func),
            "image": opened.name or "whole",
            "loop": f"{outer.frame.file.rpartition('/')[2]}:{loop.line}",
        },
    )
