"""Which names and attributes of a program certainly are lists, and what the program does with them.

A list has a literal, a comprehension, or a call such as `list(...)` or `.tolist()` as each of its
values. If one value of a name is something else, or is not known, the name is not a known list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.source.changes import named_values, stored_or_named, targets_of
from teho.source.parsed import Function, dotted_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, argument

__all__ = ["GROW", "SHRINK", "KnownList", "find_list", "growth", "is_list_value"]

GROW = frozenset(("append", "extend", "insert"))
SHRINK = frozenset(("pop", "remove", "clear"))
_KEEP = frozenset(("index", "count"))
"""Methods that only search."""
_MAKES = frozenset(("list", "sorted"))
_METHODS = frozenset(("tolist", "split", "rsplit", "splitlines", "readlines", "findall"))
_JOINS = frozenset(("concatenate", "concat", "vstack", "hstack", "append", "cat", "column_stack"))
"""Functions that give a larger array or table: `x = np.append(x, new)`."""
_DEEPEST = 5


class KnownList(NamedTuple):
    """A list of a program."""

    text: str
    """Its name in the function that has it: `done`, `self.route`."""
    level: int
    """Number of the level on the stack whose function has the name; -1: it lives longer."""
    path: str
    made: tuple[ast.AST, ...]
    """The statements that give the name a list."""
    grows: tuple[ast.AST, ...]
    shrinks: tuple[ast.AST, ...]
    others: tuple[ast.AST, ...]
    """All further expressions that use it, except searches."""
    values: tuple[ast.expr, ...]
    """The lists that it gets, and the elements that are added."""


def find_list(
    levels: Sequence[Level], number: int, node: ast.expr, purity: Purity
) -> KnownList | None:
    """Return the list that an expression of a level certainly is; None if it may be no list.

    Args:
        levels: the program's functions on a stack, the outermost first.
        number: the level with the expression.
        node: a name, or an attribute.
        purity: the program.
    """
    level = levels[number]
    if isinstance(node, ast.Attribute):
        return _attribute(level, node, purity) if dotted_name(node) else None
    if not isinstance(node, ast.Name):
        return None
    function: Function | None = level.function
    while function is not None and not function.binds(node.id):
        function = function.parent
    if function is None:
        return None
    if node.id in function.params:
        is_plain = function is level.function and not function.assigned.get(node.id)
        given = argument(levels, number, node.id) if is_plain else None
        return find_list(levels, number - 1, given, purity) if given is not None else None
    setters = [
        one
        for one in function.module.every()
        if one is function or (node.id in one.outer_names and node.id in one.assigned)
    ]
    is_local = function is level.function and not isinstance(function.node, ast.Module)
    if isinstance(function.node, ast.Module) and function is level.function:
        is_local = len(setters) == 1 and not _is_read_elsewhere(node.id, function)
    place = Place(level.place.path, function)
    readers = [function, *_readers(node.id, function)]
    return _known(node.id, place, setters, readers, purity, number if is_local else -1)


def _attribute(level: Level, node: ast.Attribute, purity: Purity) -> KnownList | None:
    """Return the list of an attribute that only the classes of this file set."""
    module, name = level.function.module, node.attr
    functions = list(module.every())
    uses = [
        one
        for function in functions
        for one in function.nodes
        if isinstance(one, ast.Attribute) and one.attr == name
    ]
    if any(not dotted_name(one) and not isinstance(one.ctx, ast.Load) for one in uses):
        return None
    fields = [
        one
        for owner in module.classes.values()
        for one in owner.body
        if isinstance(one, (ast.Assign, ast.AnnAssign))
        and name in map(dotted_name, targets_of(one))
    ]
    if not all(_is_list_field(one) for one in fields):
        return None
    names = sorted({dotted_name(one) for one in uses} - {""})
    found = [
        _known(one, level.place, functions, functions, purity, -1, is_part=True) for one in names
    ]
    known = [one for one in found if one is not None]
    if len(known) < len(names) or not (fields or any(one.made for one in known)):
        return None
    made, grows, shrinks, others, values = (
        tuple(item for each in part for item in each)
        for part in zip(*(one[3:] for one in known), strict=True)
    )
    rest = tuple(one for one in uses if not dotted_name(one))
    return KnownList(
        dotted_name(node), -1, level.place.path, (*fields, *made), grows, shrinks,
        (*others, *rest), values,
    )  # fmt: skip


def _is_list_field(node: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether a class gives each of its objects a new list."""
    value = node.value
    if isinstance(value, ast.Call) and dotted_name(value.func).endswith("field"):
        factories = [dotted_name(one.value) for one in value.keywords]
        return factories == ["list"]
    return isinstance(value, ast.List)


def _readers(name: str, function: Function) -> Iterator[Function]:
    """Yield the functions in a function that use its name."""
    for inner in function.inner.values():
        for one in inner.every():
            if not one.binds(name):
                yield one


def _is_read_elsewhere(name: str, function: Function) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name
        for one in _readers(name, function)
        for node in one.nodes
    )


def _known(
    name: str,
    at: Place,
    setters: Sequence[Function],
    readers: Sequence[Function],
    purity: Purity,
    level: int,
    *,
    is_part: bool = False,
) -> KnownList | None:
    """Return the list of a name, from the functions that set and use it; None if it may be none."""
    made: list[ast.AST] = []
    grows: list[ast.AST] = []
    shrinks: list[ast.AST] = []
    others: list[ast.AST] = []
    values: list[ast.expr] = []
    for function in setters:
        place = Place(at.path, function)
        for node in function.nodes:
            targets = [one for one in stored_or_named(node) if dotted_name(one) == name]
            if not targets and not _binds_otherwise(node, name):
                continue
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                grows.append(node)
                values.append(node.value)
                continue
            given = [value for target, value in named_values(node) if dotted_name(target) == name]
            is_plain = isinstance(node, (ast.Assign, ast.AnnAssign)) and len(given) == 1
            if not is_plain or not is_list_value(given[0], place, purity):
                return None
            is_each = isinstance(node, ast.Assign) and any(
                isinstance(one, (ast.Tuple, ast.List)) for one in node.targets
            )
            if is_each:  # `a, b = [], []`
                return None
            made.append(node)
            values.append(given[0])
    for function in dict.fromkeys(readers):
        parents = {child: node for node in function.nodes for child in ast.iter_child_nodes(node)}
        for node in function.nodes:
            if not isinstance(node, (ast.Name, ast.Attribute)) or dotted_name(node) != name:
                continue
            if not isinstance(node.ctx, ast.Load):
                continue
            use = _use(node, parents)
            if use in GROW:
                call = parents[parents[node]]
                grows.append(call)
                values += getattr(call, "args", [])[-1:]
            elif use in SHRINK:
                shrinks.append(parents[parents[node]])
            elif use not in _KEEP and use != "in":
                others.append(node)
    if not made and not is_part:
        return None
    return KnownList(
        name, level, at.path, tuple(made), tuple(grows), tuple(shrinks), tuple(others),
        tuple(values),
    )  # fmt: skip


def _use(node: ast.expr, parents: dict[ast.AST, ast.AST]) -> str:
    """Return the method that an expression calls of a list, `in` for a search, or nothing."""
    outer = parents.get(node)
    if isinstance(outer, ast.Attribute):
        call = parents.get(outer)
        return outer.attr if isinstance(call, ast.Call) and call.func is outer else ""
    if isinstance(outer, ast.Compare) and node in outer.comparators:
        place = outer.comparators.index(node)
        return "in" if isinstance(outer.ops[place], (ast.In, ast.NotIn)) else ""
    if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Del):
        return "pop"
    return ""


def _binds_otherwise(node: ast.AST, name: str) -> bool:
    """Return whether a node gives a name a value in a way that is not an assignment."""
    if isinstance(node, ast.NamedExpr):
        return node.target.id == name
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return any(
            dotted_name(item.optional_vars) == name for item in node.items if item.optional_vars
        )
    return isinstance(node, ast.ExceptHandler) and node.name == name


def is_list_value(value: ast.expr, at: Place, purity: Purity, depth: int = 0) -> bool:
    """Return whether an expression certainly gives a list."""
    if depth > _DEEPEST:
        return False
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return all(is_list_value(one, at, purity, depth + 1) for one in (body, orelse))
        case ast.BinOp(op=ast.Add() | ast.Mult(), left=left, right=right):
            # A list plus anything is a list, or fails; but `[0] * array` is an array.
            parts = (left, right) if isinstance(value.op, ast.Add) else (left,)
            if isinstance(value.op, ast.Mult):
                return isinstance(left, ast.List)
            return any(isinstance(one, (ast.List, ast.ListComp)) for one in parts)
        case ast.Subscript(value=whole, slice=ast.Slice()):
            return is_list_value(whole, at, purity, depth + 1)
        case ast.Name(id=name):
            given = at.function.assigned.get(name, [])
            return bool(given) and all(
                one.value is not None
                and one.loop is None
                and is_list_value(one.value, at, purity, depth + 1)
                for one in given
            )
        case ast.Call():
            return _makes_list(value, at, purity, depth)
    return False


def _makes_list(call: ast.Call, at: Place, purity: Purity, depth: int) -> bool:
    called = purity.program.called(call, at)
    if isinstance(called, str):
        return called in _MAKES or called in ("re.findall", "glob.glob", "os.listdir")
    if isinstance(called, Place):
        returned = [
            one.value for one in called.function.nodes if isinstance(one, ast.Return) and one.value
        ]
        is_plain = not any(isinstance(one, (ast.Yield, ast.Await)) for one in called.function.nodes)
        return (
            is_plain
            and bool(returned)
            and all(is_list_value(one, called, purity, depth + 1) for one in returned)
        )
    if isinstance(call.func, ast.Attribute) and called is None:
        if call.func.attr == "copy":
            return is_list_value(call.func.value, at, purity, depth + 1)
        # `Series.str.split` gives no list.
        is_of_column = dotted_name(call.func).endswith(f".str.{call.func.attr}")
        return call.func.attr in _METHODS and not is_of_column
    return False


def growth(node: ast.AST, name: str) -> bool:
    """Return whether a statement makes a collection larger: `x.append(1)`, `x = np.append(x, y)`.

    Args:
        node: the statement, or the call.
        name: the dotted name of the collection.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in GROW and dotted_name(node.func.value) == name
    if isinstance(node, ast.AugAssign):
        is_list = isinstance(node.value, (ast.List, ast.ListComp))
        return isinstance(node.op, ast.Add) and is_list and dotted_name(node.target) == name
    if not isinstance(node, ast.Assign) or name not in map(dotted_name, node.targets):
        return False
    value = node.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        is_list = isinstance(value.right, (ast.List, ast.ListComp))
        return is_list and dotted_name(value.left) == name
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr not in _JOINS or not value.args:
        return False
    first = value.args[0]
    parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else value.args
    return len(parts) > 1 and name in map(dotted_name, parts)
