"""Which parts of the result of a call a program uses."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from teho.source.options.table import Option, fits
from teho.source.options.uses import Use, name_of
from teho.source.parsed import SourceFile
from teho.source.program import Program

__all__ = ["Parents", "parents_of", "uses_only"]

Parents = Mapping[ast.AST, ast.AST]
"""Node -> the node around it."""


def parents_of(file: SourceFile) -> Parents:
    """Return the node around each node of a file."""
    return {
        child: node for node in ast.walk(file.module.node) for child in ast.iter_child_nodes(node)
    }


def uses_only(option: Option, use: Use, parents: Parents, program: Program) -> bool:
    """Return whether the program uses only the parts of a result that an option needs not compute.

    These are some of the items of the result (`used`), or an item that is given only to some
    functions (`item`, `only_in`).
    """
    if not option.used and option.item is None:
        return True
    items = _items(use, parents)
    if items is None:
        return False
    if option.used:
        used = {number for number, loads in items.items() if loads}
        return bool(used) and used <= set(option.used)
    loads = items.get(option.item or 0)
    return loads is not None and all(
        _is_given_to(option.only_in, one, use, parents, program) for one in loads
    )


def _items(use: Use, parents: Parents) -> dict[int, Sequence[ast.AST]] | None:
    """Return the expressions that read each item of a result; None if it is used in another way."""
    parent = parents[use.node]
    if isinstance(parent, ast.Subscript) and (number := _number(parent)) is not None:
        return {number: [parent]}
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return None
    if isinstance(target, ast.Name):
        return _items_of(target.id, use, parents)
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    names = [one.id for one in target.elts if isinstance(one, ast.Name)]
    if len(names) < len(target.elts) or not use.place.function.outer_names.isdisjoint(names):
        return None
    return {number: _loads(name, use) for number, name in enumerate(names)}


def _items_of(name: str, use: Use, parents: Parents) -> dict[int, Sequence[ast.AST]] | None:
    found: dict[int, list[ast.AST]] = {}
    for load in _loads(name, use):
        part = parents[load]
        number = _number(part) if isinstance(part, ast.Subscript) and part.value is load else None
        if number is None:
            return None
        found.setdefault(number, []).append(part)
    return dict(found)


def _loads(name: str, use: Use) -> list[ast.AST]:
    """Return where the function around a call reads a name, also in functions inside it."""
    return [
        node
        for node in ast.walk(use.place.function.node)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _number(part: ast.Subscript) -> int | None:
    key = part.slice.value if isinstance(part.slice, ast.Constant) else None
    return key if type(key) is int and isinstance(part.ctx, ast.Load) else None


def _is_given_to(
    functions: Sequence[str], load: ast.AST, use: Use, parents: Parents, program: Program
) -> bool:
    """Return whether an expression is only an argument of some functions, or calls some methods."""
    parent = parents[load]
    if isinstance(parent, ast.Attribute):
        outer = parents[parent]
        return isinstance(outer, ast.Call) and fits(functions, f".{parent.attr}")
    is_first = isinstance(parent, ast.Call) and parent.args[:1] == [load]
    return (
        isinstance(parent, ast.Call)
        and is_first
        and fits(functions, name_of(parent.func, use.place, program))
    )
