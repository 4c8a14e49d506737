"""Finds results that a loop writes again as a whole each time, although only a few rows are new.

The stack says that the writing took the time. The source says that what is written is a collection
that only grows: the loop adds elements to it, and never removes some. All writing together then
takes a time that grows with the square of the number of rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import Whole, WholeUse
from teho.model.stack import Frame
from teho.source.changes import named_values, stored_or_named
from teho.source.lists import SHRINK, growth
from teho.source.options.uses import name_of
from teho.source.parsed import Function, Loop, dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import SET_UP, Purity
from teho.source.stack import Level, argument

__all__ = ["find_saved"]

_FIRST = frozenset(
    (
        *("json.dump", "json.dumps", "pickle.dump", "pickle.dumps", "yaml.dump", "yaml.safe_dump"),
        *("joblib.dump", "torch.save", "orjson.dumps", "ujson.dump", "simplejson.dump"),
        *("dill.dump", "cloudpickle.dump", "msgpack.pack"),
    )
)
"""Functions that write their first argument."""
_SECOND = frozenset(("numpy.save", "numpy.savetxt", "numpy.savez", "numpy.savez_compressed"))
_TEXTS = frozenset(("json.dumps", "pickle.dumps", "orjson.dumps", "yaml.dump", "yaml.safe_dump"))
"""Functions that may also give a text that the program writes nowhere."""
_TABLES = frozenset(
    (
        *("to_csv", "to_parquet", "to_json", "to_pickle", "to_feather", "to_hdf", "to_excel"),
        *("write_csv", "write_parquet", "write_ipc", "write_json"),
    )
)
"""Methods that write their object."""
_WRITES = frozenset(("write", "writelines", "writerows", "write_text", "write_bytes"))
"""Methods that write their first argument."""
_SAME_ROWS = frozenset(
    (
        *("array", "asarray", "stack", "vstack", "hstack", "concatenate", "concat", "cat"),
        *("DataFrame", "list", "tuple", "tensor", "as_tensor", "join", "from_records", "dict"),
    )
)
"""Functions and methods whose result has all rows of their first argument."""
_SAME_OBJECT = frozenset(("tolist", "copy", "numpy", "items", "values", "encode", "reset_index"))
_DEEPEST = 5


class _Growing(NamedTuple):
    """A collection that a loop makes larger."""

    name: str
    """Its name where it is written."""
    number: int
    """Number of the level that has the loop."""
    loop: Loop
    made: tuple[ast.AST, ...]
    grows: tuple[ast.AST, ...]
    path: str
    is_table: bool
    """Whether it has keys, such as a dictionary."""


def find_saved(levels: Sequence[Level], purity: Purity) -> Whole | None:
    """Return the writing of a growing collection that a stack is in; None if there is none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        if not isinstance(level.node, ast.Call):
            continue
        how, data = _written(level.node, level, purity)
        names = [_names(one, many=how.startswith("json")) for one in data]
        if not data or any(one is None for one in names):
            continue
        for node in (inner for one in names for inner in one or ()):
            found = _growing(levels, number, node, purity)
            if found is not None:
                return _whole(levels[: number + 1], found, how, purity)
    return None


def _whole(levels: Sequence[Level], found: _Growing, how: str, purity: Purity) -> Whole | None:
    file = purity.program.file(found.path)
    outer = levels[found.number]
    if file is None:
        return None
    lines = [
        tuple(
            Frame(found.path, file.function_at(line).name or "<module>", line, file.line_text(line))
            for line in sorted({int(getattr(one, "lineno", 0)) for one in nodes})
        )
        for nodes in (found.made, found.grows)
    ]
    text = outer.file.line_text(found.loop.line).rstrip(":")
    return Whole(
        calls=tuple(one.frame for one in levels),
        loop=Frame(outer.frame.file, outer.frame.function, found.loop.line, text),
        last=found.loop.last,
        use=WholeUse.SAVED,
        name=found.name,
        how=how,
        key="items" if found.is_table else "rows",
        made=lines[0],
        grows=lines[1],
    )


def _written(call: ast.Call, level: Level, purity: Purity) -> tuple[str, list[ast.expr]]:
    """Return how a call writes, and what; nothing if it writes nothing, or adds to a file."""
    name = name_of(call.func, level.place, purity.program)
    words = {one.arg: one.value for one in call.keywords}
    if name in _FIRST:
        is_text = name in _TEXTS and not (name.startswith("yaml") and len(call.args) > 1)
        if is_text and not _is_written(call, level):
            return "", []
        return name, call.args[:1]
    if name in _SECOND:
        return name, [*call.args[1:], *words.values()][: 1 if "savez" not in name else None]
    if not isinstance(call.func, ast.Attribute) or not name.startswith("."):
        return "", []
    method = call.func.attr
    mode = words.get("mode")
    if method in _TABLES:
        is_added = mode is not None and not ast.unparse(mode).strip("'\"").startswith("w")
        return ("", []) if is_added else (method, [call.func.value])
    return (method, call.args[:1]) if method in _WRITES else ("", [])


def _is_written(call: ast.Call, level: Level) -> bool:
    """Return whether the text of a call is the argument of a method that writes it."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _WRITES
        and any(call in ast.walk(one) for one in node.args)
        for node in level.function.nodes
    )


def _names(node: ast.expr, depth: int = 0, *, many: bool = False) -> list[ast.expr] | None:
    """Return the names and attributes of which a value has all rows.

    None: most of the value may be something else, such as the weights of a model.

    Args:
        node: the value.
        depth: number of expressions around it.
        many: whether it may have further names: a text of JSON rarely has other large values.
    """
    if depth > _DEEPEST:
        return None
    match node:
        case ast.Name():
            return [node]
        case ast.Attribute():
            return [node] if dotted_name(node) else None
        case ast.Constant() | ast.JoinedStr():
            return []
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            found = [_names(one, depth + 1, many=many) for one in parts]
            if any(one is None for one in found):
                return None
            every = [inner for one in found for inner in one or ()]
            return every if many or len(every) == 1 else None
        case ast.BinOp(op=ast.Add(), left=left, right=ast.Constant()):
            return _names(left, depth + 1, many=many)
        case ast.ListComp(elt=_, generators=[one]) | ast.GeneratorExp(elt=_, generators=[one]):
            return _names(one.iter, depth + 1, many=many) if not one.ifs else None
        case ast.Call(func=func):
            method = func.attr if isinstance(func, ast.Attribute) else root_name(func)
            if method in _SAME_OBJECT and isinstance(func, ast.Attribute) and not node.args:
                return _names(func.value, depth + 1, many=many)
            is_text = method in ("dumps", "dump")
            if (method in _SAME_ROWS or is_text) and node.args:
                return _names(node.args[0], depth + 1, many=many)
    return None


def _growing(
    levels: Sequence[Level], number: int, node: ast.expr, purity: Purity
) -> _Growing | None:
    """Return the loop that makes a collection larger and writes it; None if it is not certain."""
    level = levels[number]
    if isinstance(node, ast.Attribute):
        return _attribute(levels, number, node, purity)
    name, function = dotted_name(node), level.function
    if not function.binds(name):
        return None
    if name in function.params:
        given = None if function.assigned.get(name) else argument(levels, number, name)
        found = _growing(levels, number - 1, given, purity) if given is not None else None
        return found._replace(name=name) if found else None
    given_here = function.assigned[name]
    for loop in reversed(level.loops()):
        if not loop.is_statement:
            continue
        statements = getattr(loop.node, "body", [])
        inside = purity.program.all_nodes(loop.node, statements)
        grows = [one for one in inside if growth(one, name) or _adds_item(one, name, loop)]
        setting = [
            one
            for one in inside
            if name in map(dotted_name, stored_or_named(one)) and one not in grows
        ]
        if not grows or setting or _shrinks(inside, name):
            continue
        made = [one for one in function.nodes if _gives(one, name) and one not in grows]
        is_made_before = bool(made) and all(
            getattr(one, "lineno", 0) < loop.line or getattr(one, "lineno", 0) > loop.last
            for one in made
        )
        # With several loops around, the collection may be made again in each pass of an outer one.
        if not is_made_before or any(one.loop is not None for one in given_here):
            continue
        if _may_change_elsewhere(inside, name, level, purity):
            continue
        is_table = any(isinstance(one, ast.Assign) and not growth(one, name) for one in grows)
        return _Growing(name, number, loop, tuple(made), tuple(grows), level.place.path, is_table)
    return None


def _attribute(
    levels: Sequence[Level], number: int, node: ast.Attribute, purity: Purity
) -> _Growing | None:
    """Return the loop that makes the collection of an attribute larger and writes it."""
    name, level = dotted_name(node), levels[number]
    owner = level.function.owner
    if name != f"self.{node.attr}" or owner is None:
        return None
    methods = [one for one in level.function.module.inner.values() if one.owner is owner]
    every = [one for function in level.function.module.every() for one in function.nodes]
    if any(
        isinstance(target, ast.Attribute)
        and target.attr == node.attr
        and dotted_name(target) != name
        for one in every
        for target in stored_or_named(one)
    ):
        return None
    made: list[ast.AST] = []
    adding: dict[str, list[ast.AST]] = {}
    for method in methods:
        if _shrinks(method.nodes, name):
            return None
        for one in method.nodes:
            if growth(one, name):
                adding.setdefault(method.name, []).append(one)
            elif name in map(dotted_name, stored_or_named(one)):
                if method.name not in SET_UP or not _gives(one, name):
                    return None
                made.append(one)
    if not made or not adding or any(name in SET_UP for name in adding):
        return None
    for at in range(number, -1, -1):
        on_stack = {one.function.name for one in levels[at : number + 1]}
        for loop in reversed(levels[at].loops()):
            if not loop.is_statement:
                continue
            inside = purity.program.all_nodes(loop.node, getattr(loop.node, "body", []))
            called = {
                one.func.attr
                for one in inside
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
            }
            makers = {root_name(one.func) for one in inside if isinstance(one, ast.Call)}
            if owner.name in makers:
                return None  # each pass has a new object
            here = levels[at].function if levels[at].function.owner is owner else None
            grows = [
                one
                for method, nodes in adding.items()
                for one in nodes
                if (one in inside if here and here.name == method else method in on_stack | called)
            ]
            if grows:
                return _Growing(
                    name, at, loop, tuple(made), tuple(grows), level.place.path, is_table=False
                )
    return None


def _gives(node: ast.AST, name: str) -> bool:
    """Return whether a statement gives a name a new list, dictionary, array or table."""
    values = [value for target, value in named_values(node) if dotted_name(target) == name]
    return bool(values) and isinstance(node, (ast.Assign, ast.AnnAssign))


def _adds_item(node: ast.AST, name: str, loop: Loop) -> bool:
    """Return whether a statement adds an item whose key differs in each pass: `x[step] = y`."""
    if not isinstance(node, ast.Assign) or not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return False
    items = {one.id for one in ast.walk(loop.node.target) if isinstance(one, ast.Name)}
    return any(
        isinstance(target, ast.Subscript)
        and dotted_name(target.value) == name
        and items & {one.id for one in ast.walk(target.slice) if isinstance(one, ast.Name)}
        for target in node.targets
    )


def _shrinks(nodes: Sequence[ast.AST], name: str) -> bool:
    """Return whether code may remove elements."""
    for one in nodes:
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in (*SHRINK, "popleft", "popitem")
            and dotted_name(one.func.value) == name
        ):
            return True
        if isinstance(one, ast.Delete) and name in map(_whole_name, one.targets):
            return True
        if isinstance(one, ast.Assign) and any(
            isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Slice)
            and dotted_name(target.value) == name
            for target in one.targets
        ):
            return True
    return False


def _whole_name(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted_name(node)


def _may_change_elsewhere(
    inside: Sequence[ast.AST], name: str, level: Level, purity: Purity
) -> bool:
    """Return whether a function that the loop calls with the collection may remove elements."""
    return any(
        _shrinks(called.function.nodes, param)
        for node in inside
        if isinstance(node, ast.Call)
        and isinstance(called := purity.program.called(node, level.place), Place)
        for param in _params_with(node, called.function, name)
    )


def _params_with(call: ast.Call, function: Function, name: str) -> Iterator[str]:
    """Yield the parameters of a function that get an object."""
    for param, value in zip(function.params_of_call, call.args, strict=False):
        if dotted_name(value) == name:
            yield param
    for word in call.keywords:
        if word.arg and dotted_name(word.value) == name:
            yield word.arg
