"""Finds `map` of Hugging Face data sets in a loop, with an argument that only names the iteration.

The library keeps the result of `map` in files, and finds it again by the function and its
arguments. If an argument differs in each iteration, all rows are processed again, although the
function only prints this argument.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import Loop, dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import names_in, statements_of
from teho.source.stack import Level

__all__ = ["find_mapped_again"]

_FILES = lazy_pattern(r"/datasets/(arrow_dataset|dataset_dict|fingerprint)\.py$")
_METHODS = frozenset(("map", "filter"))
_PRINTS = lazy_pattern(r"print|(.*\.)?(log|logger|logging)\.\w+|tqdm\.write|.*\.write")


def find_mapped_again(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the call on a stack that maps the same data set in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if not any(_FILES.search(frame.file) for frame in frames):
        return None
    for level in levels:
        call = level.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr not in _METHODS or not call.args:
            continue
        loop = next((one for one in reversed(level.loops()) if one.is_statement), None)
        if loop is None or not isinstance(loop.node, ast.For):
            return None
        return _of_loop(call, loop, loop.node, level, purity)
    return None


def _of_loop(
    call: ast.Call, loop: Loop, node: ast.For, level: Level, purity: Purity
) -> CostlyOption | None:
    words = {one.arg: one.value for one in call.keywords}
    given = words.get("fn_kwargs")
    if None in words or not isinstance(given, ast.Dict):
        return None
    statement = _statement(call, node)
    if statement is None:
        return None
    names = _given_in(loop, level)
    rest = [call.func, *call.args, *(value for word, value in words.items() if word != "fn_kwargs")]
    if any(names_in(one) & names for one in rest):
        return None
    varying: dict[str, ast.expr] = {}
    for key, value in zip(given.keys, given.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        if names_in(value) & names:
            varying[key.value] = value
    (function,) = call.args if len(call.args) == 1 else (None,)
    named = (
        purity.program.named(function.id, level.place) if isinstance(function, ast.Name) else None
    )
    if not varying or not isinstance(named, Place) or not _only_prints(set(varying), named):
        return None
    target = statement.targets[0]
    if len(level.function.assigned.get(getattr(target, "id", ""), ())) != 1:
        return None
    new = _with_first(statement, varying)
    frame = level.frame
    return CostlyOption(
        name="mapped_again_in_loop",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "line": str(statement.lineno),
            "new": new,
            "names": " and ".join(f"`{one}`" for one in varying),
            "function": named.function.name,
        },
    )


def _statement(call: ast.Call, loop: ast.For) -> ast.Assign | None:
    """Return the statement `features = data.map(...)` of a loop."""
    for one in statements_of(loop.body):
        match one:
            case ast.Assign(targets=[ast.Name()], value=value) if value is call:
                return one
    return None


def _given_in(loop: Loop, level: Level) -> set[str]:
    """Return the names that get values in a loop."""
    return {
        name
        for name, given in level.function.assigned.items()
        if any(loop.line <= one.line <= loop.last for one in given)
    }


def _only_prints(names: set[str], at: Place) -> bool:
    """Return whether a function uses parameters only in statements that print or log them."""
    if not names <= set(at.function.params):
        return False
    printed = {
        id(inner)
        for node in at.function.nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _PRINTS.fullmatch(dotted_name(node.value.func) or root_name(node.value.func))
        for inner in ast.walk(node)
    }
    used = (node for node in at.function.nodes if isinstance(node, ast.Name) and node.id in names)
    return all(id(node) in printed for node in used)


def _with_first(statement: ast.Assign, varying: dict[str, ast.expr]) -> str:
    """Return the statement with 0 in place of what differs between the iterations."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    for node in ast.walk(copy):
        if isinstance(node, ast.keyword) and node.arg == "fn_kwargs":
            given = node.value
            if isinstance(given, ast.Dict):
                given.values = [
                    ast.Constant(0)
                    if isinstance(key, ast.Constant) and key.value in varying
                    else value
                    for key, value in zip(given.keys, given.values, strict=True)
                ]
    return ast.unparse(copy)
