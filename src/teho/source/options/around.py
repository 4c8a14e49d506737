"""The words of an advice: parts of the source of a call, and of what is around this call.

`g.apply(lambda x: x.mean())` has the words `object` (`g`) and `first` (the function). If the
expression around a call is described by a pattern, the call is `_` in it: `_ @ b`.
"""

from __future__ import annotations

import ast
import copy
import functools
import re
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Union

from teho.source.options.results import Parents
from teho.source.options.table import Option, fits
from teho.source.options.uses import Use, function_text, name_of, value_text
from teho.source.program import Program

__all__ = ["is_around", "words_of"]

_CALL = "_"
"""The call, in the expression around it."""
_ENDS = (ast.stmt, ast.Lambda, ast.excepthandler)
_LONGEST = 100
"""Maximum number of characters of a word: longer ones make an advice unreadable."""


def is_around(option: Option, use: Use, parents: Parents, program: Program) -> bool:
    """Return whether a call, and what is around it, fits an option."""
    if option.arguments is not None and len(use.arguments) > option.arguments:
        return False
    if option.object and not fits((option.object,), _object(use, program)):
        return False
    if option.first and not fits((option.first,), _first(use, program)):
        return False
    return not option.inside or _match_around(option, use, parents) is not None


def words_of(
    option: Option, use: Use, value: str, parents: Parents, program: Program
) -> dict[str, str] | None:
    """Return the words that the advice of an option needs; None if one of them is not known.

    Args:
        option: the option.
        use: the call.
        value: the value of the option, as text.
        parents: the node around each node of the file.
        program: the files of the program.
    """
    needed = _words_in(option.advice)
    found: dict[str, Union[str, None]] = {}
    matches = (
        re.fullmatch(option.value, value) if option.value else None,
        _match_around(option, use, parents) if option.inside else None,
        re.fullmatch(option.object, _object(use, program)) if option.object else None,
        re.fullmatch(option.first, _first(use, program)) if option.first else None,
    )
    for match in matches:
        found |= match.groupdict() if match else {}
    for name in needed - set(found):
        if name in _MAKERS:
            found[name] = _MAKERS[name](use, program)
    words = {name: text for name in needed if (text := found.get(name))}
    is_whole = set(words) == needed and all(len(text) <= _LONGEST for text in words.values())
    return words if is_whole else None


@functools.cache
def _words_in(advice: str) -> frozenset[str]:
    """Return the words of an advice, without those that each advice may have."""
    names = {name for _, name, _, _ in string.Formatter().parse(advice) if name}
    return frozenset(names - {"option", "at"})


def _object_of(use: Use) -> ast.expr | None:
    """Return the object whose method is called; None: it is no method."""
    match use.node:
        case ast.Call(func=ast.Attribute(value=value)):
            return value
    return None


def _object(use: Use, program: Program) -> str:
    """Return the object of a method as text; a name that gets a value once stands for it."""
    node = _object_of(use)
    return value_text(node, use.place, program) if node is not None else ""


def _first(use: Use, program: Program) -> str:
    """Return the first argument as text; a name that gets a value once does not stand for it."""
    if not use.arguments:
        return ""
    node = use.arguments[0]
    if text := function_text(node, use.place, program):
        return text
    name = name_of(node, use.place, program)
    return name if name and not name.startswith(".") else ast.unparse(node)


def _match_around(option: Option, use: Use, parents: Parents) -> re.Match[str] | None:
    found = (re.fullmatch(option.inside, text) for text in _around(use, parents))
    return next(filter(None, found), None)


def _around(use: Use, parents: Parents) -> Iterator[str]:
    """Yield the expressions around a call as text, the inner one first."""
    outer = parents.get(use.node)
    while outer is not None and not isinstance(outer, _ENDS):
        inner, outer = outer, parents.get(outer)
        is_method = isinstance(outer, ast.Call) and outer.func is inner
        if isinstance(inner, ast.expr) and not is_method:
            yield ast.unparse(copy.deepcopy(inner, {id(use.node): ast.Name(_CALL, ast.Load())}))


def _own_object(use: Use, _: Program) -> str | None:
    node = _object_of(use)
    return ast.unparse(node) if node is not None else None


def _argument(number: int, use: Use, _: Program) -> str | None:
    return ast.unparse(use.arguments[number]) if number < len(use.arguments) else None


def _applied(use: Use, program: Program) -> str | None:
    """Return the function of a method for its whole object: `2 * a` of `a.map(lambda x: 2 * x)`."""
    whole = _object_of(use)
    text = function_text(use.arguments[0], use.place, program) if use.arguments else ""
    function = ast.parse(text, mode="eval").body if text else None
    if whole is None or not isinstance(function, ast.Lambda) or len(function.args.args) != 1:
        return None
    body = _Whole(function.args.args[0].arg, whole).visit(function.body)
    return ast.unparse(ast.fix_missing_locations(body))


class _Whole(ast.NodeTransformer):
    """Makes a computation with one value to a computation with a whole column or table.

    Args:
        name: the name of the value.
        whole: the column or table.
    """

    def __init__(self, name: str, whole: ast.expr) -> None:
        self._name, self._whole = name, whole

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._whole if node.id == self._name else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        where = ast.parse("np.where", mode="eval").body
        return ast.Call(where, [self.visit(one) for one in (node.test, node.body, node.orelse)], [])


_MAKERS: Mapping[str, Callable[[Use, Program], Union[str, None]]] = {
    "object": _own_object,
    "first": functools.partial(_argument, 0),
    "second": functools.partial(_argument, 1),
    "third": functools.partial(_argument, 2),
    "applied": _applied,
}
