"""Finds texts that a program makes for messages that its logging never writes.

`log.debug(f"state {x}")` makes the text before `debug` sees that its level is off. The stacks show
that the text takes the time, and the source of all files shows the level of logging.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame, is_library
from teho.patterns import lazy_pattern
from teho.source.known import fits, is_mutator, known
from teho.source.options.files import OwnFiles
from teho.source.options.uses import assigned_value, name_of
from teho.source.parsed import Function, SourceFile, dotted_name, root_name
from teho.source.program import Place, Program

__all__ = ["find_unwritten_texts"]

_LEVELS = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "WARN": 30, "ERROR": 40,
           "CRITICAL": 50, "FATAL": 50}  # fmt: skip
_METHODS = {"debug": "DEBUG", "info": "INFO"}
_UNKNOWN = frozenset(("dictConfig", "fileConfig", "coloredlogs", "loguru"))
"""Words of programs whose levels are elsewhere."""
_WRITES = lazy_pattern(
    r"/logging/__init__\.py:(?!Logger\.(debug|info|isEnabledFor|getEffectiveLevel)|debug|info)"
)
"""Functions that logging calls only for a message whose level is on."""
_FORMAT = lazy_pattern(r"[+0 ]?\d*(?:\.\d+)?[dfeEgGxs]?")
_CHANGES = frozenset(("print", "open", "input", "next", "setattr", "exec", "eval", "delattr"))
_DEEPEST = 3
_LONGEST = 80


class _Level(NamedTuple):
    """The lowest level that the program's logging writes."""

    name: str
    place: str
    """Where it is set; empty: it is the default."""

    @property
    def number(self) -> int:
        return _LEVELS[self.name]


def find_unwritten_texts(
    own: OwnFiles, program: Program, stacks: Sequence[Sequence[Frame]]
) -> Iterator[CostlyOption]:
    """Yield the messages on the stacks whose text is made, although they are not written.

    Args:
        own: the files.
        program: the same files.
        stacks: the stacks, innermost frame first.
    """
    messages = _Messages(own, program)
    found: dict[tuple[str, int], tuple[ast.Call, set[Frame]]] = {}
    written = set()
    for stack in stacks:
        for frame in stack:
            call = messages.at(frame)
            if call is None:
                continue
            key = frame.file, call.lineno
            if any(_WRITES.search(f"{one.file}:{one.function}") for one in stack):
                written.add(key)  # its level is on
            found.setdefault(key, (call, set()))[1].add(frame)
            break
    left = {key: one for key, one in found.items() if key not in written}
    level = _lowest(own, program) if left else None
    for (path, _), (call, frames) in left.items():
        file = own.parsed(path)
        if file is not None and level is not None:
            one = _found(path, file, call, level, program)
            if one is not None:
                lines = tuple(sorted(frames, key=lambda each: (each.line, each.text)))
                yield CostlyOption(name=one.name, at=one.at, lines=lines, words=one.words)


class _Messages:
    """Finds the calls that make the text of a message.

    Args:
        own: the files.
        program: the same files.
    """

    def __init__(self, own: OwnFiles, program: Program) -> None:
        self._own, self._program = own, program
        self._known: dict[tuple[str, int], ast.Call | None] = {}

    def at(self, frame: Frame) -> ast.Call | None:
        """Return the call whose text a line makes; None: it makes none, or changes something."""
        if is_library(frame.file) or _METHODS.keys().isdisjoint(self._words(frame.file)):
            return None
        key = frame.file, frame.line
        if key not in self._known:
            self._known[key] = self._find(frame)
        return self._known[key]

    def _words(self, path: str) -> frozenset[str]:
        return self._own.vocabulary.get(path, frozenset())

    def _find(self, frame: Frame) -> ast.Call | None:
        file = self._own.parsed(frame.file)
        function = file.function_at(frame.line) if file is not None else None
        for node in function.nodes if function is not None else ():
            match node:
                case ast.If(test=test) if "isEnabledFor" in ast.unparse(test):
                    last = node.body[-1].end_lineno or node.lineno
                    if node.lineno <= frame.line <= last:
                        return None  # the program makes the text only for a level that is on
                case ast.Call(func=ast.Attribute(attr=method), args=[_, *_]) if method in _METHODS:
                    is_there = node.lineno <= frame.line <= (node.end_lineno or node.lineno)
                    place = Place(frame.file, function) if function is not None else None
                    if place is not None and is_there and any(map(_is_made, node.args)):
                        return node if self._only_reads(node, place) else None
        return None

    def _only_reads(self, message: ast.Call, place: Place) -> bool:
        """Return whether the program may leave out the text: it changes nothing else."""
        nodes = tuple(inner for one in message.args for inner in ast.walk(one))
        return self._is_harmless(nodes, place, 0)

    def _is_harmless(self, nodes: Sequence[ast.AST], place: Place, depth: int) -> bool:
        """Return whether some code changes at most new objects of its own function."""
        own = place.function.assigned.keys() - set(place.function.params) if depth else ()
        for node in nodes:
            match node:
                case ast.Global() | ast.Nonlocal() | ast.Await() | ast.Yield() | ast.YieldFrom():
                    return False
                case ast.NamedExpr() if not depth:
                    return False
                case ast.Attribute() | ast.Subscript():
                    if not isinstance(node.ctx, ast.Load) and root_name(node) not in own:
                        return False
                case ast.Call():
                    if not self._is_harmless_call(node, place, own, depth):
                        return False
        return True

    def _is_harmless_call(
        self, call: ast.Call, place: Place, own: Collection[str], depth: int
    ) -> bool:
        called = self._program.called(call, place)
        if isinstance(called, Place):
            return depth < _DEEPEST and self._is_harmless(called.function.nodes, called, depth + 1)
        if isinstance(called, str):
            return called not in _CHANGES and not fits("impure", called)
        if called is not None:
            return False  # a class of the program
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        is_change = is_mutator(name) or name in known().methods.impure
        return bool(name) and (not is_change or root_name(call.func) in own)


def _is_made(node: ast.expr) -> bool:
    """Return whether an argument is a text that is made before the call."""
    match node:
        case ast.JoinedStr():
            return any(isinstance(one, ast.FormattedValue) for one in node.values)
        case ast.BinOp(left=left, op=ast.Mod()):
            return isinstance(left, ast.Constant) and isinstance(left.value, str)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_made(left) or _is_made(right)
        case ast.Call(func=ast.Name(id="str" | "repr")):
            return True
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in ("array2string", "array_str", "array_repr", "to_string", "format")
    return False


def _lowest(own: OwnFiles, program: Program) -> _Level | None:
    """Return the lowest level that is written; None: it is not in the source."""
    files = own.all_parsed
    if files is None or not own.words.isdisjoint(_UNKNOWN):
        return None
    found = []
    for path, file in files.items():
        for function in file.module.every():
            for node in function.nodes:
                if not isinstance(node, ast.Call):
                    continue
                place = Place(path, function)
                name = name_of(node.func, place, program)
                given = next((one.value for one in node.keywords if one.arg == "level"), None)
                if name == "logging.basicConfig":
                    if any(one.arg is None for one in node.keywords):
                        return None
                    text = _level(given, place, program) if given is not None else "WARNING"
                elif name.endswith(".setLevel") and len(node.args) == 1:
                    text = _level(node.args[0], place, program)
                else:
                    continue
                if text is None:
                    return None
                found.append(_Level(text, f"{path.rpartition('/')[2]}:{node.lineno}"))
    return min(found, key=lambda one: one.number) if found else _Level("WARNING", "")


def _level(node: ast.expr, place: Place, program: Program) -> str | None:
    """Return the name of a level; None: it is not in the source."""
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, place.function)
        if found is not None:
            node, place = found[0], Place(place.path, found[1])
    if isinstance(node, ast.Constant):
        names = [one for one, number in _LEVELS.items() if number == node.value]
        text = node.value if isinstance(node.value, str) else (names or [""])[0]
    else:
        text = name_of(node, place, program).removeprefix("logging.")
    return text if text in _LEVELS else None


def _found(
    path: str, file: SourceFile, call: ast.Call, level: _Level, program: Program
) -> CostlyOption | None:
    function = file.function_at(call.lineno)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    needed = _METHODS[method]
    is_default = not level.place
    if _LEVELS[needed] >= level.number or (is_default and method != "debug"):
        return None
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None or not _is_logger(owner, Place(path, function), program):
        return None
    where = f" ({level.place})" if level.place else ", the default of Python"
    words = {"level": f"{level.name}{where}"}
    lazy = _lazily(call)
    if lazy is not None:
        words["new"] = ast.unparse(lazy)
    else:
        module = _logging(function)
        words["test"] = f"if {ast.unparse(owner)}.isEnabledFor({module}{needed}):"
    name = "unwritten_text" if lazy is not None else "unwritten_text_of_calls"
    text = " ".join(file.text_of(call).split())[:_LONGEST]
    at = Frame(path, function.name or "<module>", call.lineno, text)
    return CostlyOption(name=name, at=at, words=words)


def _is_logger(owner: ast.expr, place: Place, program: Program) -> bool:
    """Return whether an object is a logger of Python's logging, or its module."""
    if name_of(owner, place, program) == "logging":
        return True
    wanted = dotted_name(owner)
    values = [
        (node.value, function)
        for function in place.function.module.every()
        for node in function.nodes
        if isinstance(node, ast.Assign) and wanted in map(dotted_name, node.targets)
    ]
    return bool(values) and all(
        isinstance(value, ast.Call)
        and name_of(value.func, Place(place.path, function), program) == "logging.getLogger"
        for value, function in values
    )


def _logging(function: Function) -> str:
    """Return how a file names the levels: `logging.`, or nothing after it imports them."""
    outer: Function | None = function
    while outer is not None:
        for name, module in outer.imports.items():
            if module == "logging":
                return f"{name}."
        outer = outer.parent
    return "logging."


def _lazily(call: ast.Call) -> ast.Call | None:
    """Return the call for which logging makes the text; None: there is no such call."""
    match call:
        case ast.Call(args=[ast.JoinedStr(values=parts)]):
            text, values = "", []
            for part in parts:
                if isinstance(part, ast.Constant):
                    text += str(part.value).replace("%", "%%")
                    continue
                field = _field(part) if isinstance(part, ast.FormattedValue) else None
                if field is None or not isinstance(part, ast.FormattedValue):
                    return None
                text += field
                values.append(part.value)
        case ast.Call(args=[ast.BinOp(left=ast.Constant(value=str() as text), right=right)]):
            if not isinstance(right, ast.Tuple):
                return None
            values = list(right.elts)
        case _:
            return None
    if any(isinstance(one, (ast.Call, ast.Starred)) for value in values for one in ast.walk(value)):
        return None
    return ast.Call(call.func, [ast.Constant(text), *values], call.keywords)


def _field(part: ast.FormattedValue) -> str | None:
    """Return a field of `%`: `%s` of `{x}`, `%.3f` of `{x:.3f}`; None: it has no such field."""
    if part.conversion == ord("r"):
        return "%r" if part.format_spec is None else None
    if part.conversion not in (-1, ord("s")):
        return None
    if part.format_spec is None:
        return "%s"
    match part.format_spec:
        case ast.JoinedStr(values=[ast.Constant(value=str() as spec)]):
            is_known = spec[-1:] in tuple("dfeEgGx") and _FORMAT.fullmatch(spec)
            return f"%{spec}" if is_known else None
    return None
