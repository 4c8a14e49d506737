"""Finds searches with a regular expression that is made of a whole list of texts.

`re` tries the alternatives of `"|".join(names)` one after the other at each place of the text, so
the time grows with the number of names. The stack shows the search; the source shows how the
pattern is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.changes import named_values
from teho.source.counts import length
from teho.source.parsed import Function, dotted_name
from teho.source.program import Place, Program
from teho.source.stack import Level, argument

__all__ = ["find_alternatives"]

_SEARCHES = frozenset(
    ("finditer", "findall", "search", "match", "fullmatch", "sub", "subn", "split")
)
_MODULES = frozenset(("re", "regex"))
_LEAST = 50
"""With fewer alternatives, another way is hardly faster."""
_EDGES = ("\\b", "(?<!\\w)")
_DEEPEST = 5
_USES = {
    "finditer": "in the loop, skip each match with `if match.group() not in known: continue`",
    "findall": "keep only the found words that are in `known`",
    "sub": "give a function as the replacement, which returns `match.group()` unchanged if it is "
    "not in `known`",
}
_USES["subn"] = _USES["sub"]
_OF_FIRST = "test with `any(word in known for word in pattern.findall(text))`"


class _Pattern(NamedTuple):
    """An expression with a regular expression, and the function that it is in."""

    node: ast.expr
    at: Place
    call: Union[ast.Call, None] = None
    """The call that gets the expression, such as `re.compile`."""


def find_alternatives(
    levels: Sequence[Level], frames: Sequence[Frame], program: Program
) -> CostlyOption | None:
    """Return the pattern of a list of texts with which the innermost line searches.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        program: the files.
    """
    number = len(levels) - 1
    level = levels[number]
    if not all(frame == level.frame or "/re" in frame.file for frame in frames[:1]):
        return None
    for call in _calls(level):
        method = call.func
        if not isinstance(method, ast.Attribute) or method.attr not in _SEARCHES:
            continue
        is_module = dotted_name(method.value) in _MODULES
        given = call.args[0] if is_module and call.args else method.value
        first = _Pattern(given, level.place, call if is_module else None)
        pattern = _pattern(first, levels, number, program, 0)
        names = _joined(pattern, program) if pattern is not None else None
        if pattern is not None and names is not None:
            return _found(level, method.attr, pattern, names, program)
    return None


def _calls(level: Level) -> Iterator[ast.Call]:
    """Yield the calls that the line may execute."""
    if isinstance(level.node, ast.Call):
        yield level.node
    for node in level.function.nodes:
        if isinstance(node, ast.Call) and node.lineno == level.frame.line:
            yield node


def _pattern(
    one: _Pattern, levels: Sequence[Level], number: int, program: Program, depth: int
) -> Union[_Pattern, None]:
    """Return the expression of a pattern, without names and `re.compile`; None: it is not known."""
    node, at, call = one
    if depth > _DEEPEST:
        return None
    values: list[_Pattern] = []
    match node:
        case ast.Call() if program.called(node, at) in ("re.compile", "regex.compile"):
            values = [_Pattern(node.args[0], at, node)] if node.args else []
        case ast.Name(id=name) if name in at.function.params:
            is_here = number >= 0 and at.function is levels[number].function
            given = argument(levels, number, name) if is_here else None
            if given is None:
                return None
            outer = _Pattern(given, levels[number - 1].place, call)
            return _pattern(outer, levels, number - 1, program, depth + 1)
        case ast.Name(id=name):
            function: Union[Function, None] = at.function
            while function is not None and not function.binds(name):
                function = function.parent
            given_values = function.assigned.get(name, []) if function is not None else []
            if function is not None and all(one.loop is None for one in given_values):
                place = Place(at.path, function)
                values = [_Pattern(one.value, place, call) for one in given_values if one.value]
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            values = list(_of_object(name, at))
        case ast.BinOp() | ast.JoinedStr() | ast.Call():
            return one
    return _pattern(values[0], levels, number, program, depth + 1) if len(values) == 1 else None


def _of_object(name: str, at: Place) -> Iterator[_Pattern]:
    """Yield the values that the methods of a class give to `self.name`."""
    owner = at.function.owner
    for function in at.function.module.every() if owner is not None else ():
        if function.owner is owner:
            for node in function.nodes:
                for target, value in named_values(node):
                    if dotted_name(target) == f"self.{name}":
                        yield _Pattern(value, Place(at.path, function))


def _joined(pattern: _Pattern, program: Program) -> ast.expr | None:
    """Return the list whose items are the alternatives of a pattern; None: it is short."""
    for node in ast.walk(pattern.node):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(between)), attr="join"),
                args=[given],
            ) if between.strip("()\\b?:") == "|":
                names = _names(given, program, pattern.at)
                count = length(names, pattern.at.function)
                return names if count is None or count >= _LEAST else None
    return None


def _names(node: ast.expr, program: Program, at: Place) -> ast.expr:
    """Return the list in `map(re.escape, names)`, and in `sorted(re.escape(n) for n in names)`."""
    match node:
        case ast.Call(func=ast.Name(id="map"), args=[_, given]):
            return _names(given, program, at)
        case ast.Call(func=ast.Name(id="sorted" | "list" | "set" | "reversed"), args=[given, *_]):
            return _names(given, program, at)
        case ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one]):
            return _names(one.iter, program, at)
    return node


def _found(
    level: Level, method: str, pattern: _Pattern, names: ast.expr, program: Program
) -> CostlyOption | None:
    file = program.file(pattern.at.path)
    if file is None:
        return None
    frame, node = level.frame, pattern.call or pattern.node
    text = " ".join(_texts(pattern, 0))
    use = _USES.get(method, _OF_FIRST)
    is_of_object = pattern.at.function.owner is not None
    return CostlyOption(
        name="words_as_alternatives" if _has_edges(text) else "texts_as_alternatives",
        at=Frame(
            pattern.at.path, pattern.at.function.name or "<module>", node.lineno, file.text_of(node)
        ),
        lines=(frame,),
        words={
            "names": ast.unparse(names),
            "known": "self.known" if is_of_object else "known",
            "use": use.replace("known", "self.known") if is_of_object else use,
            "search": frame.short_place,
        },
    )


def _has_edges(text: str) -> bool:
    return any(edge in text for edge in _EDGES)


def _texts(pattern: _Pattern, depth: int) -> Iterator[str]:
    """Yield the fixed texts of a pattern, also those that have a name."""
    for node in ast.walk(pattern.node) if depth < _DEEPEST else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(node, ast.Name):
            function: Union[Function, None] = pattern.at.function
            while function is not None and not function.binds(node.id):
                function = function.parent
            given = function.assigned.get(node.id, []) if function is not None else []
            if (
                function is not None
                and len(given) == 1
                and isinstance(given[0].value, ast.Constant)
            ):
                yield from _texts(
                    _Pattern(given[0].value, Place(pattern.at.path, function)), depth + 1
                )
