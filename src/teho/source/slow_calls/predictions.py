"""Finds models that predict one row in each iteration of a loop.

Each call of `predict` checks its input and starts its work again, which takes much longer than the
prediction of one row. If all rows are known before the loop, one call can predict all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Function, Loop, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.rows import Row, row_of
from teho.source.stack import Level

__all__ = ["find_single_predictions"]

_LIBRARIES = lazy_pattern(r"/(sklearn|lightgbm|xgboost|catboost|imblearn|keras)/")
_PANDAS = lazy_pattern(r"/pandas/core/")
_METHODS = frozenset(
    (
        *("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"),
        *("transform", "inverse_transform"),
    )
)
_TRAINS = lazy_pattern(r"(partial_|re)?fit(_\w+)?|update|(re)?train\w*|learn\w*|set_params|load\w*")
"""Methods that change a model: the next prediction may depend on the one before."""
_WAITS = frozenset(("sleep", "input", "recv", "readline", "poll", "get_nowait"))
"""Functions of programs that get their rows one after the other, such as from an instrument."""
_ENDS = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_NAMES = ("predictions", "all_predictions", "predictions_of_rows")
_INDEXES = ("number", "row_number", "number_of_row")
_LEAST_ROWS = 20
_DEEPEST = 6


class _Single(NamedTuple):
    """A prediction of one row, and the loop around it."""

    call: ast.Call
    method: str
    """Such as `model.predict`."""
    row: Row
    at: int
    """Level of the loop."""
    loop: Loop


def find_single_predictions(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the call on a stack that predicts one row in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    for number, level in enumerate(levels):
        call = level.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr in _METHODS and call.args and _is_of_library(level, frames):
            found = _in_loop(levels, number, call, purity)
            return _option(levels, number, found) if found is not None else None
    return None


def _is_of_library(level: Level, frames: Sequence[Frame]) -> bool:
    """Return whether a level calls a function of a library that has models of this kind."""
    inner = (frames[place - 1] for place in range(1, len(frames)) if frames[place] is level.frame)
    return any(_LIBRARIES.search(one.file) for one in inner)


def _in_loop(
    levels: Sequence[Level], number: int, call: ast.Call, purity: Purity
) -> _Single | None:
    """Return the innermost loop that predicts another row in each iteration."""
    level = levels[number]
    row = None if isinstance(call.args[0], ast.Starred) else row_of(call.args[0], level.function)
    if row is None:
        return None
    changed = [*levels]
    changed[number] = level._replace(node=ast.Tuple(elts=[row.source], ctx=ast.Load()))
    for at in range(number, -1, -1):
        loops = list(levels[at].loops())
        if _PANDAS.search(levels[at].caller):  # `table.apply(function, axis=1)`
            loops.insert(0, levels[at].as_loop())
        for loop in reversed(loops):
            if Inputs(changed, at, loop, purity).of_call(number) is Value.SAME:
                continue  # an outer loop has other rows
            known = Inputs(changed, at, loop, purity, knows_items=True)
            is_known = known.of_call(number) is Value.SAME and _has_all_items(known, at, loop)
            if not is_known or not _is_same_model(levels, number, at, loop, purity):
                return None
            return _Single(call, ast.unparse(call.func), row, at, loop)
        if levels[at].caller:
            return None
    return None


def _has_all_items(inputs: Inputs, at: int, loop: Loop) -> bool:
    """Return whether all items of a loop are known before it. For pandas, they are a table."""
    if loop.iterable is None:
        return not isinstance(loop.node, ast.While)
    return not isinstance(loop.node, ast.AsyncFor) and inputs.is_of_known_items(at, loop.iterable)


def _is_same_model(
    levels: Sequence[Level], number: int, at: int, loop: Loop, purity: Purity
) -> bool:
    """Return whether a loop goes through many items, and uses the same model for all of them."""
    if not may_iterate(loop, levels[at].function, _LEAST_ROWS):
        return False
    level = levels[number]
    model = root_name(level.node.func) if isinstance(level.node, ast.Call) else ""
    made = [one.line for one in level.function.assigned.get(model, ())]
    if number > at and made:
        return False  # the function makes or loads the model again: this is another fault
    if any(loop.first <= line <= loop.last for line in made):
        return False
    is_for = isinstance(loop.node, ast.For)
    statements = loop.node.body if isinstance(loop.node, ast.For) else [loop.node]
    if is_for and any(isinstance(node, _ENDS) for node in _without_functions(statements)):
        return False
    nodes = purity.program.all_nodes(loop.node, statements)
    return not any(map(_trains_or_waits, _reached(nodes, levels[at].place, purity)))


def _without_functions(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of some statements, without those of functions in them."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _reached(nodes: Iterable[ast.AST], place: Place, purity: Purity) -> Iterator[ast.Call]:
    """Yield the calls of some code, and those of the program's functions that it calls."""
    waiting = [(nodes, place, 0)]
    seen: set[int] = set()
    while waiting:
        some, at, depth = waiting.pop()
        for node in some:
            if not isinstance(node, ast.Call):
                continue
            yield node
            called = purity.program.called(node, at)
            if isinstance(called, Place) and id(called.function.node) not in seen:
                seen.add(id(called.function.node))
                if depth < _DEEPEST:
                    waiting.append((called.function.nodes, called, depth + 1))


def _trains_or_waits(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
    is_method = isinstance(call.func, ast.Attribute)
    return name in _WAITS or (is_method and _TRAINS.fullmatch(name) is not None)


def _option(levels: Sequence[Level], number: int, one: _Single) -> CostlyOption:
    level, outer = levels[number], levels[one.at]
    name = "rows_predicted"
    words: dict[str, str] = {}
    if one.at == number:
        name, words = _words(one, level.function)
    if isinstance(one.loop.node, (ast.For, ast.AsyncFor)):
        loop = f"the loop at {_place(outer, one.loop.line)}"
    elif one.loop.iterable is None:
        loop = f"the calls of `{outer.function.name or 'the function'}` by pandas"
    else:
        loop = f"the expression at {_place(outer, one.loop.line)}"
    frame = level.frame
    return CostlyOption(
        name=name,
        at=Frame(frame.file, frame.function, one.call.lineno, ast.unparse(one.call)),
        lines=(frame,),
        words={**words, "method": one.method, "loop": loop},
    )


def _place(level: Level, line: int) -> str:
    return f"{level.frame.file.rpartition('/')[2]}:{line}"


def _words(one: _Single, function: Function) -> tuple[str, dict[str, str]]:
    """Return the name of the advice that fits the code, and its words."""
    if not isinstance(one.loop.node, ast.For):
        return "rows_predicted", {}
    used = function.assigned.keys() | set(function.params)
    free = next((name for name in _NAMES if name not in used), _NAMES[-1])
    table, index = one.row.table, one.row.place
    target, iterable = one.loop.node.target, one.loop.node.iter
    header = ""
    if table is None or index is None or not _counts(index, one.loop):
        match target, iterable:
            case (
                ast.Tuple(elts=[ast.Name() as index, inner]),
                ast.Call(func=ast.Name(id="enumerate"), args=[items]),
            ):
                table = _table_of(one.row.item, inner, items)
            case _:
                table = _table_of(one.row.item, target, iterable)
                index = ast.Name(next((one for one in _INDEXES if one not in used), _INDEXES[-1]))
                inner_text = ast.unparse(target)
                if isinstance(target, ast.Tuple):
                    inner_text = f"({inner_text.strip('()')})"
                header = f"for {index.id}, {inner_text} in enumerate({ast.unparse(iterable)}):"
    if table is None or not _is_before(table, one.loop, function):
        return "rows_predicted", {}
    whole = ast.Call(
        func=one.call.func, args=[table, *one.call.args[1:]], keywords=one.call.keywords
    )
    words = {
        "before": f"{free} = {ast.unparse(whole)}",
        "new": f"{free}[[{ast.unparse(index)}]]",
        "old": ast.unparse(one.call),
    }
    if header:
        return "rows_predicted_in_order", {**words, "header": header}
    return "rows_predicted_by_index", words


def _counts(index: ast.expr, loop: Loop) -> bool:
    """Return whether a name counts the items of a loop: `for i in range(n)`."""
    if not isinstance(index, ast.Name) or not isinstance(loop.node, ast.For):
        return False
    match loop.node:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
            return name == index.id
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[_]),
        ):
            return name == index.id
    return False


def _is_before(table: ast.expr, loop: Loop, function: Function) -> bool:
    """Return whether all names of an expression have their values before a loop."""
    names = {one.id for one in ast.walk(table) if isinstance(one, ast.Name)}
    given = (one for name in names for one in function.assigned.get(name, ()))
    return not any(loop.line <= one.line <= loop.last for one in given)


def _table_of(item: ast.expr, target: ast.expr, iterable: ast.expr) -> ast.expr | None:
    """Return the table whose rows a loop goes through; None if they are not the items."""
    column: ast.expr | None = None
    match item:
        case ast.Subscript(value=ast.Name() as inner, slice=(ast.Name() | ast.List()) as part):
            item, column = inner, part
        case ast.Name():
            pass
        case _:
            return None
    name = ast.unparse(item)
    match target, iterable:
        case (
            ast.Tuple(elts=[_, row]),
            ast.Call(func=ast.Attribute(value=table, attr="iterrows"), args=[]),
        ):
            if ast.unparse(row) != name:
                return None
            return table if column is None else ast.Subscript(table, column, ast.Load())
        case ast.Tuple(elts=rows), ast.Call(func=ast.Name(id="zip"), args=tables):
            pairs = zip(rows, tables, strict=False)
            found = next((table for row, table in pairs if ast.unparse(row) == name), None)
        case ast.Name(id=row_name), _:
            found = iterable if row_name == name else None
        case _:
            return None
    return found if found is not None and column is None and _is_array(found) else None


def _is_array(node: ast.expr) -> bool:
    """Return whether an expression may be a table whose items are its rows."""
    if isinstance(node, ast.Attribute) and node.attr in ("columns", "index"):
        return False
    match node:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return True
        case ast.Call(func=ast.Attribute(attr="to_numpy" | "tolist"), args=[]):
            return True
    return False
