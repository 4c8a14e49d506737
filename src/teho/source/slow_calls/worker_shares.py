"""Finds items that each worker of a data loader prepares, although it uses only its own share.

Each worker goes through all items of an `IterableDataset`. If the worker chooses its share after it
has prepared an item, all workers do the same work.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place, is_imported
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import loads_of, names_in
from teho.source.stack import Level

__all__ = ["find_prepared_by_all_workers"]

_WORKER = lazy_pattern(r"/torch/utils/data/_utils/worker\.py$")
_COUNTS = lazy_pattern(r"\b(num_workers|n_workers|workers_count)\b")
_NUMBERS = lazy_pattern(r"\b(\w+\.id|worker_id)\b")
_MOVES = lazy_pattern(r"read\w*|next|seek|get|pop|popleft|recv|load|fromfile")
"""Functions that change the position of what they read: a worker must not leave them out."""


class _Choice(NamedTuple):
    """The statement of a loop that chooses the share of a worker."""

    loop: ast.For
    test: ast.If
    chosen: Sequence[ast.stmt]
    """The statements for the items of the worker."""
    is_skip: bool
    """Whether the statement goes on with the next item: `if number % n != id: continue`."""


def find_prepared_by_all_workers(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the call on a stack that prepares an item before the worker chooses its share.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if not any(_WORKER.search(one.file) for one in frames):
        return None
    for number, level in enumerate(levels):
        for choice in _choices(level):
            if level.gets_next and level.frame.line == choice.loop.lineno:
                if number + 1 < len(levels):
                    return _in_generator(choice, level, levels[number + 1], purity)
            elif choice.loop.lineno < level.frame.line < choice.test.lineno:
                return _in_loop(choice, level, purity)
    return None


def _choices(level: Level) -> Iterator[_Choice]:
    """Yield the statements of a function that choose the share of a worker."""
    function = level.function
    for loop in (one.node for one in function.loops if isinstance(one.node, ast.For)):
        for number, statement in enumerate(loop.body):
            match statement:
                case ast.If(test=test, body=[ast.Continue()], orelse=[]) if _is_share(
                    test, ast.NotEq, function
                ):
                    yield _Choice(loop, statement, loop.body[number + 1 :], is_skip=True)
                case ast.If(test=test, body=body, orelse=[]) if _is_share(test, ast.Eq, function):
                    if _yields(body) and not loop.body[number + 1 :]:
                        yield _Choice(loop, statement, body, is_skip=False)


def _yields(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Yield) for one in body for node in ast.walk(one))


def _is_share(test: ast.expr, kind: type[ast.cmpop], function: Function) -> bool:
    """Return whether a condition is `number % num_workers == worker.id`, in either order."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, kind):
            for whole, number in ((left, right), (right, left)):
                match whole:
                    case ast.BinOp(op=ast.Mod(), right=count):
                        is_count = _is_of_worker(count, _COUNTS, function)
                        return is_count and _is_of_worker(number, _NUMBERS, function)
    return False


def _is_of_worker(node: ast.expr, pattern: re.Pattern[str], function: Function) -> bool:
    """Return whether an expression is the number of a worker, or the number of all workers."""
    if pattern.search(ast.unparse(node)):
        return True
    if not isinstance(node, ast.Name):
        return False
    given = function.assigned.get(node.id, ())
    return bool(given) and all(
        one.value is not None and pattern.search(ast.unparse(one.value)) for one in given
    )


def _in_loop(choice: _Choice, level: Level, purity: Purity) -> CostlyOption | None:
    """Return a call in the same loop, in a statement before the choice."""
    for statement in choice.loop.body:
        if statement is choice.test:
            break
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                if call is level.node and _may_move(name, call, statement, choice, level, purity):
                    return _found("worker_chooses_late", call, level, {
                        "line": str(statement.lineno),
                        "old": level.file.text_of(statement),
                        "test": str(choice.test.lineno),
                        "where": (
                            f"after the `if` at line {choice.test.lineno}"
                            if choice.is_skip
                            else f"to the begin of the `if` at line {choice.test.lineno}"
                        ),
                    })  # fmt: skip
    return None


def _may_move(
    name: str,
    call: ast.Call,
    statement: ast.Assign,
    choice: _Choice,
    level: Level,
    purity: Purity,
) -> bool:
    """Return whether a statement may be executed only for the items of the worker."""
    if not _is_alone(call, level.place, purity):
        return False
    chosen = {id(node) for one in choice.chosen for node in ast.walk(one)}
    uses = loads_of(name, level.function.nodes)
    if len(level.function.assigned.get(name, ())) != 1 or any(
        id(one) not in chosen for one in uses
    ):
        return False
    between = [
        one for one in choice.loop.body if statement.lineno < one.lineno < choice.test.lineno
    ]
    inputs = names_in(call)
    changed = {
        node.id
        for one in between
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return not inputs & changed


def _is_alone(call: ast.Call, place: Place, purity: Purity) -> bool:
    """Return whether a call reads nothing whose position the next item needs."""
    called = purity.program.called(call, place)
    if not isinstance(called, Place):
        is_module = isinstance(called, str) and is_imported(root_name(call.func), place.function)
        return is_module and not _MOVES.fullmatch(dotted_name(call.func).rpartition(".")[2])
    function = called.function
    params = set(function.params)
    for node in function.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                return False
            case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom():
                return False
            case ast.Call(func=ast.Attribute(value=ast.Name(id=given), attr=method)):
                if given in params and _MOVES.fullmatch(method):
                    return False
            case ast.Call(func=ast.Name(id="next")):
                return False
    return True


def _in_generator(
    choice: _Choice, level: Level, inner: Level, purity: Purity
) -> CostlyOption | None:
    """Return a call in a generator of the program whose items the loop chooses."""
    call = inner.node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    argument = call.args[0]
    if not isinstance(argument, ast.Name) or not _is_alone(call, inner.place, purity):
        return None
    if not _can_be_called(call, level, inner):
        return None
    for node in inner.function.nodes:
        if not isinstance(node, ast.Yield) or node.value is None:
            continue
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        at = next((number for number, one in enumerate(parts) if one is call), None)
        name = _target(choice.loop, at, len(parts)) if at is not None else ""
        if not name or not _is_only_chosen(name, choice, level):
            continue
        new = [ast.unparse(argument if one is call else one) for one in parts]
        first = choice.chosen[0].lineno
        return _found("worker_chooses_after_generator", call, inner, {
            "line": str(node.lineno),
            "old": inner.file.text_of(node),
            "new": f"yield {', '.join(new)}",
            "before": str(first),
            "prepare": f"{name} = {ast.unparse(call.func)}({name})",
        })  # fmt: skip
    return None


def _can_be_called(call: ast.Call, level: Level, inner: Level) -> bool:
    """Return whether the function with the choice can call the same function."""
    root = root_name(call.func)
    if root == "self":
        owners = level.function.owner, inner.function.owner
        return owners[0] is not None and owners[0] is owners[1]
    is_same_file = level.frame.file == inner.frame.file
    return is_same_file and not inner.function.binds(root) and not level.function.binds(root)


def _target(loop: ast.For, at: int | None, count: int) -> str:
    """Return the name that a loop gives to one part of its items."""
    match loop.target:
        case ast.Name(id=name) if count == 1:
            return name
        case ast.Tuple(elts=parts) if len(parts) == count and at is not None:
            part = parts[at]
            return part.id if isinstance(part, ast.Name) else ""
    return ""


def _is_only_chosen(name: str, choice: _Choice, level: Level) -> bool:
    """Return whether the program uses a part of an item only if the worker chose this item."""
    chosen = {id(node) for one in choice.chosen for node in ast.walk(one)}
    uses = loads_of(name, level.function.nodes)
    is_given_once = len(level.function.assigned.get(name, ())) == 1
    return is_given_once and bool(uses) and all(id(one) in chosen for one in uses)


def _found(name: str, call: ast.Call, level: Level, words: dict[str, str]) -> CostlyOption:
    frame = level.frame
    return CostlyOption(
        name=name,
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={"file": frame.file.rpartition("/")[2], **words},
    )
