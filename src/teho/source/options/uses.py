"""Where a program calls functions and sets the settings of libraries, each with its values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from teho.source.parsed import Function, SourceFile, dotted_name, root_name
from teho.source.program import Place, Program, is_imported

__all__ = [
    "Use",
    "assigned_value",
    "function_text",
    "name_of",
    "table_of",
    "uses_in",
    "value_text",
]

_DEEPEST = 4


class Use(NamedTuple):
    """A call of a function, or a setting that gets a value."""

    name: str
    """Such as `sklearn.svm.SVC`, `.save` for a method of any object, or `os.environ[HOME]` for a
    setting."""
    node: ast.expr | ast.stmt
    file: SourceFile
    place: Place
    arguments: tuple[ast.expr, ...]
    keywords: Mapping[str, ast.expr]
    is_open: bool = False
    """Whether it has further arguments that are not in the source."""


def uses_in(
    file: SourceFile, path: str, program: Program, is_end: Callable[[str], bool]
) -> Iterator[Use]:
    """Yield calls and settings of a file.

    Args:
        file: the file.
        path: its path.
        program: the files of the program.
        is_end: returns whether a name may end in this word, such as `SVC`.
    """
    for node in ast.walk(file.module.node):
        if isinstance(node, ast.Call) and _may_be(node, is_end):
            place = Place(path, file.function_at(node.lineno))
            yield from _of_call(node, file, place, program)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                is_setting = isinstance(target, (ast.Attribute, ast.Subscript))
                if is_setting and is_end(_end(target)):
                    place = Place(path, file.function_at(node.lineno))
                    name = name_of(target, place, program)
                    yield Use(name, node, file, place, (node.value,), {})


def _may_be(call: ast.Call, is_end: Callable[[str], bool]) -> bool:
    """Return whether a call may have a name with such an end, or set a setting with it."""
    end = _end(call.func)
    if end in ("partial", "update") or is_end(end):
        return True
    first = call.args[0] if call.args else None
    key = first.value if isinstance(first, ast.Constant) else None
    return isinstance(key, str) and is_end(key.rpartition(".")[2])


def _end(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key.rpartition(".")[2]
    return ""


def _of_call(call: ast.Call, file: SourceFile, place: Place, program: Program) -> Iterator[Use]:
    name, arguments = name_of(call.func, place, program), call.args
    if name == "functools.partial" and arguments:
        name, arguments = name_of(arguments[0], place, program), arguments[1:]
    known = [*takewhile(lambda one: not isinstance(one, ast.Starred), arguments)]
    is_open = len(known) < len(arguments)
    keywords: dict[str, ast.expr] = {}
    for word in call.keywords:
        table = {word.arg: word.value} if word.arg else table_of(word.value, place.function)
        keywords |= table or {}
        is_open = is_open or table is None
    use = Use(name, call, file, place, tuple(known), keywords, is_open)
    yield use
    yield from _settings(use)


def _settings(call: Use) -> Iterator[Use]:
    """Yield the settings of a call: `config.update("x64", True)`, `os.environ.update(A="1")`."""
    owner, _, method = call.name.rpartition(".")
    owner = owner if method in ("setdefault", "update") else call.name
    if call.name == "os.putenv":
        owner = "os.environ"
    first = call.arguments[0] if call.arguments else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        values = dict(zip([first.value], call.arguments[1:2], strict=False))
    elif method == "update":
        table = table_of(first, call.place.function) if first is not None else None
        values = {**(table or {}), **call.keywords}
    else:
        return
    for key, value in values.items():
        yield call._replace(name=f"{owner}[{key}]", arguments=(value,), keywords={})


def name_of(node: ast.expr, place: Place, program: Program) -> str:
    """Return the dotted name of a function, class or setting; empty if it is not of a library.

    The module is named in full: `np.save` is `numpy.save`. Of another object, only the name of the
    attribute is known: `.save`.
    """
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        owner = name_of(node.value, place, program)
        return f"{owner}[{key}]" if owner and isinstance(key, str) else ""
    root, _, rest = dotted_name(node).partition(".")
    if root and is_imported(root, place.function):
        named = program.named(root, place)
        return ".".join(filter(None, (named, rest))) if isinstance(named, str) else ""
    if isinstance(node, ast.Name):
        named = program.named(node.id, place)
        return named if isinstance(named, str) else ""
    return f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def value_text(node: ast.expr, place: Place, program: Program, depth: int = 0) -> str:
    """Return a value as text: `True`, `64-true` of a text, `numpy.float16` of a name.

    A name that gets a value only once has this value.
    """
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        found = assigned_value(node.id, place.function)
        if found is not None:
            value, function = found
            return value_text(value, Place(place.path, function), program, depth + 1)
    named = name_of(node, place, program)
    if named and not named.startswith("."):
        return named
    return function_text(node, place, program) or ast.unparse(node)


def function_text(node: ast.expr, place: Place, program: Program) -> str:
    """Return a function of the program that only computes its result, as the text of a lambda.

    Args:
        node: a lambda, or the name of a function.
        place: the function with this expression.
        program: the files of the program.
    """
    if isinstance(node, ast.Lambda):
        return ast.unparse(node)
    if not isinstance(node, ast.Name):
        return ""
    found = assigned_value(node.id, place.function)
    if found is not None:
        return function_text(found[0], place, program)
    function = program.named(node.id, place)
    inner = function.function.node if isinstance(function, Place) else None
    if not isinstance(inner, ast.FunctionDef) or inner.decorator_list:
        return ""
    match inner.body:
        case [ast.Return(value=ast.expr() as value)]:
            return ast.unparse(ast.Lambda(_without_types(inner.args), value))
        case [ast.Expr(value=ast.Constant(value=str())), ast.Return(value=ast.expr() as value)]:
            return ast.unparse(ast.Lambda(_without_types(inner.args), value))
    return ""


def _without_types(given: ast.arguments) -> ast.arguments:
    names = [ast.arg(one.arg) for one in given.args]
    is_plain = not (given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg)
    names = names if is_plain else [*names, ast.arg("_")]
    return ast.arguments([], names, None, [], [], None, [])


def assigned_value(name: str, function: Function) -> tuple[ast.expr, Function] | None:
    """Return the value of a name that gets a value only once, and the function that gives it."""
    outer: Function | None = function
    while outer is not None and not outer.knows(name):
        outer = outer.parent
    given = outer.assigned.get(name, []) if outer is not None else []
    if outer is None or name in outer.params or len(given) != 1:
        return None
    one = given[0]
    return (one.value, outer) if one.value is not None and one.loop is None else None


def table_of(node: ast.expr, function: Function) -> dict[str, ast.expr] | None:
    """Return the items of a dictionary whose keys are texts; None if they are not in the source."""
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, function)
        if found is None or _has_new_items(node.id, found[1]):
            return None
        return table_of(*found)
    if isinstance(node, ast.Call) and dotted_name(node.func) == "dict" and not node.args:
        return {word.arg: word.value for word in node.keywords if word.arg}
    if not isinstance(node, ast.Dict):
        return None
    return {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _has_new_items(name: str, function: Function) -> bool:
    """Return whether code may add items to a dictionary, or change its items."""
    return any(
        (isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)))
        or (isinstance(node, ast.Attribute) and node.attr in ("update", "setdefault", "pop"))
        for node in ast.walk(function.module.node)
        if isinstance(node, (ast.Subscript, ast.Attribute)) and root_name(node) == name
    )
