"""Finds lists that a loop searches from their begin, or whose elements it moves each time.

The stack says that `x in items` took the time. The source says that `items` certainly is a list,
and that the loop does not make it again for each search: a set or a dictionary would be as good,
and finds an element at once. Whether the list is long is only seen in the times.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import Whole, WholeUse
from teho.model.stack import Frame
from teho.source.counts import length
from teho.source.lists import KnownList, find_list
from teho.source.parsed import Loop, SourceFile, dotted_name
from teho.source.purity import Purity
from teho.source.queues import as_often, heap_calls
from teho.source.stack import Level

__all__ = ["find_searched"]

_SEARCHES = frozenset(("index", "count", "remove"))
_SHORT = 30
"""A search in a list of fewer elements is about as fast as a set."""
_MOST_LINES = 6
_NO_HASH = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)


class _Search(NamedTuple):
    items: ast.expr
    how: str
    key: ast.expr | None
    use: WholeUse


def find_searched(levels: Sequence[Level], purity: Purity) -> Whole | None:
    """Return the search in a list that the innermost function of a stack executes; None: none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    number = len(levels) - 1
    level = levels[number]
    search = _search(level)
    if search is None:
        return None
    known = find_list(levels, number, search.items, purity)
    if known is None or _is_short(known, level):
        return None
    found = _loop(levels, known)
    if found is None:
        return None
    at, loop = found
    text = levels[at].file.line_text(max(loop.line, 1)).rstrip(":")
    is_hashable = not any(map(_has_no_hash, _elements(known, search)))
    if search.use is WholeUse.SEARCHED and not is_hashable:
        return None  # a set cannot have such elements
    made_in = purity.program.file(known.path)
    if made_in is None:
        return None
    is_own = at == number == known.level
    heap = heap_calls(known, level, loop) if is_own and search.how in ("sort", "pop") else ()
    if search.how == "sort" and not heap:
        return None
    is_shifted = search.use is WholeUse.SHIFTED and number == at
    return Whole(
        calls=tuple(one.frame for one in levels),
        loop=Frame(levels[at].frame.file, levels[at].frame.function, loop.line, text),
        last=loop.last,
        use=search.use,
        name=dotted_name(search.items),
        how="sort" if heap else search.how,
        key=level.file.text_of(search.key) if search.key is not None else "",
        made=_frames(known.made, known.path, made_in),
        grows=_frames(known.grows, known.path, made_in),
        shrinks=_frames(known.shrinks, known.path, made_in),
        is_only_searched=not known.others,
        instead=heap,
        as_often=as_often(level.node, level.function) if is_shifted else (),
    )


def _search(level: Level) -> _Search | None:
    """Return the search that a level executes."""
    match level.node:
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[items]):
            return _Search(items, "in", key, WholeUse.SEARCHED)
        case ast.Call(func=ast.Attribute(value=items, attr=how), args=[key], keywords=[]):
            if how in _SEARCHES:
                return _Search(items, how, key, WholeUse.SEARCHED)
            is_first = how == "pop" and isinstance(key, ast.Constant) and key.value == 0
            return _Search(items, how, None, WholeUse.SHIFTED) if is_first else None
        case ast.Call(
            func=ast.Attribute(value=items, attr="insert"), args=[ast.Constant(value=0), key]
        ):
            return _Search(items, "insert", key, WholeUse.SHIFTED)
        case ast.Call(func=ast.Attribute(value=items, attr="sort"), args=[], keywords=[]):
            return _Search(items, "sort", None, WholeUse.SHIFTED)
        case ast.Subscript(value=items, slice=ast.Constant(value=0), ctx=ast.Del()):
            return _Search(items, "del", None, WholeUse.SHIFTED)
    return None


def _is_short(known: KnownList, level: Level) -> bool:
    """Return whether the source says that a list never has many elements."""
    if known.grows:
        return False
    lengths = [length(one, level.function) for one in known.values]
    return bool(lengths) and all(one is not None and one < _SHORT for one in lengths)


def _loop(levels: Sequence[Level], known: KnownList) -> tuple[int, Loop] | None:
    """Return the innermost loop that searches a list several times after it was made.

    The number of its level comes first. None: each search may have a new list.
    """
    lines = [getattr(one, "lineno", 0) for one in known.made]
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        if number < known.level:
            return None
        for loop in reversed(level.loops()):
            is_inside = any(loop.first <= line <= loop.last for line in lines)
            if number > known.level or not is_inside:
                return number, loop
        if number > known.level and level.is_called_again:
            return number, level.as_loop()
    return None


def _elements(known: KnownList, search: _Search) -> list[ast.expr]:
    """Return expressions for elements of a list."""
    found = [search.key] if search.key is not None else []
    for one in known.values:
        if isinstance(one, ast.List):
            found += one.elts
        elif isinstance(one, ast.ListComp):
            found.append(one.elt)
    added = [
        one.args[-1]
        for one in known.grows
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("append", "insert")
        and one.args
    ]
    return found + added


def _has_no_hash(node: ast.expr) -> bool:
    """Return whether a value is certainly a list, a dictionary, a set or an array."""
    if isinstance(node, _NO_HASH):
        return True
    name = dotted_name(node.func) if isinstance(node, ast.Call) else ""
    return name.startswith(("np.", "numpy.", "torch.")) or name in ("list", "dict", "set")


def _frames(nodes: Sequence[ast.AST], path: str, file: SourceFile) -> tuple[Frame, ...]:
    """Return some lines of a file, in their order."""
    lines = sorted({int(getattr(one, "lineno", 0)) for one in nodes})
    return tuple(
        Frame(path, file.function_at(line).name or "<module>", line, file.line_text(line))
        for line in lines[:_MOST_LINES]
    )
