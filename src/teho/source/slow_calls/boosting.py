"""Finds gradient boosting that is continued with a new training for each tree.

`booster = xgb.train(settings, data, 1, xgb_model=booster)` in a loop copies the model, prepares the
data, and predicts with all earlier trees, for one more tree. `Booster.update` only adds the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.inputs import Inputs, Value
from teho.source.options.uses import value_text
from teho.source.parsed import Loop, dotted_name, root_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_single_rounds"]


class _Library(NamedTuple):
    """How a library continues a training."""

    name: str
    """Name of its option in `costly_options.toml`."""
    module: str
    model: str
    """The argument with the model so far."""
    data: frozenset[str]
    """Classes of its data sets."""
    begin: str
    """The code that makes a model without trees."""
    update: str
    """The code that adds a tree."""


_LIBRARIES = {
    "xgboost.train": _Library(
        "rounds_of_xgboost",
        "xgboost",
        "xgb_model",
        frozenset(("xgboost.DMatrix", "xgboost.QuantileDMatrix")),
        "{module}.Booster({settings}, [{data}])",
        "{model}.update({data}, {model}.num_boosted_rounds())",
    ),
    "lightgbm.train": _Library(
        "rounds_of_lightgbm",
        "lightgbm",
        "init_model",
        frozenset(("lightgbm.Dataset",)),
        "{module}.Booster({settings}, {data})",
        "{model}.update()",
    ),
}
_KEEPS = frozenset(("append", "add", "insert", "put", "setdefault", "extend", "submit"))
"""Methods that may keep the model of a round."""
_CHANGES = frozenset(("update", "pop", "setdefault", "clear", "popitem"))
"""Methods that change a dictionary of settings."""
_EVALUATIONS = frozenset(
    ("evals", "evals_result", "valid_sets", "valid_names", "callbacks", "feval", "custom_metric")
)
"""Further arguments that evaluate the model after each tree."""
_WORDS = frozenset(("num_boost_round", "verbose_eval", "keep_training_booster"))
"""Further arguments that do not matter for one tree."""


class _Whole(NamedTuple):
    """One call that trains all trees of a loop, with an evaluation after each tree."""

    code: str
    results: tuple[str, ...]
    """Names of the dictionaries that get the evaluations; the loop makes them for each tree."""
    number: str
    """The name of the number of the round."""


class _Round(NamedTuple):
    """A training of one tree in a loop."""

    call: ast.Call
    library: _Library
    model: str
    settings: ast.expr
    data: str
    made: ast.Assign | None
    """The statement in the loop that makes the data."""
    whole: _Whole | None = None
    """How one call trains all trees, if the call has more than data and settings."""


def find_single_rounds(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the training of one tree on a stack that a loop continues.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for number, level in enumerate(levels):
        for loop in reversed(level.loops()):
            if not loop.is_statement:
                continue
            for one in _rounds(levels, number, loop, purity):
                calls = [one.call, one.made.value] if one.made else [one.call]
                line = level.frame.line
                if any(part.lineno <= line <= (part.end_lineno or 0) for part in calls):
                    return _found(one, level, loop)
    return None


def _rounds(levels: Sequence[Level], number: int, loop: Loop, purity: Purity) -> Iterator[_Round]:
    level = levels[number]
    body = purity.program.all_nodes(loop.node, getattr(loop.node, "body", []))
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=model)], value=ast.Call() as call):
                called = purity.program.called(call, level.place)
                library = _LIBRARIES.get(called) if isinstance(called, str) else None
                if library is None:
                    continue
                found = _round(levels, number, loop, call, library, model, purity)
                if found and _is_only_read(model, call, body):
                    yield found


def _round(
    levels: Sequence[Level],
    number: int,
    loop: Loop,
    call: ast.Call,
    library: _Library,
    model: str,
    purity: Purity,
) -> _Round | None:
    level = levels[number]
    words = {word.arg: word.value for word in call.keywords if word.arg}
    first = "train_set" if "train_set" in words else "dtrain"
    given = dict(zip(("params", first, "num_boost_round"), call.args, strict=False)) | words
    settings, data, count = given.get("params"), given.get(first), given.get("num_boost_round")
    others = given.keys() - {"params", first, library.model} - _WORDS
    before = given.get(library.model)
    is_continued = isinstance(before, ast.Name) and before.id == model
    if settings is None or count is None or not is_continued:
        return None
    whole = _whole(level, loop, call, library, model, others, purity) if others else None
    if others and whole is None:
        return None
    program = purity.program
    if value_text(count, level.place, program) != "1" or not isinstance(data, ast.Name):
        return None
    begins = [one for one in level.function.assigned.get(model, []) if one.line < loop.line]
    is_new = [isinstance(one.value, ast.Constant) and one.value.value is None for one in begins]
    if is_new != [True] or model in level.function.params:
        return None
    if _changes(settings, loop):
        return None
    inside = [
        node
        for node in program.all_nodes(loop.node, getattr(loop.node, "body", []))
        if isinstance(node, ast.Assign) and any(root_name(one) == data.id for one in node.targets)
    ]
    made = inside[0] if inside else None
    given_again = [
        one
        for one in level.function.assigned.get(data.id, [])
        if loop.line <= one.line <= loop.last
    ]
    if len(given_again) > 1 or len(inside) != len(given_again):
        return None
    if made is not None and not _is_same_data(levels, number, loop, made, library, purity):
        return None
    if whole is not None and made is not None:
        return None
    return _Round(call, library, model, settings, data.id, made, whole)


def _whole(
    level: Level,
    loop: Loop,
    call: ast.Call,
    library: _Library,
    model: str,
    others: set[str],
    purity: Purity,
) -> _Whole | None:
    """Return the call that trains all trees; None if the loop needs the model after each tree."""
    match loop.node:
        case ast.For(
            target=ast.Name(id=number), iter=ast.Call(func=ast.Name(id="range"), args=[count])
        ):
            pass
        case _:
            return None
    body = purity.program.all_nodes(loop.node, getattr(loop.node, "body", []))
    uses = [one for one in body if isinstance(one, ast.Name) and one.id == model]
    is_used = len(uses) > 2 or any(isinstance(one, (ast.Break, ast.Return)) for one in body)
    stops = "early_stopping" in ast.unparse(call)  # with all trees in one call, it would stop
    if not others <= _EVALUATIONS or is_used or stops:
        return None
    results = []
    for word in call.keywords:
        for name in ast.walk(word.value) if word.arg in others else ():
            if not isinstance(name, ast.Name):
                continue
            if name.id == number:
                return None
            given = level.function.assigned.get(name.id, [])
            inside = [one.value for one in given if loop.line <= one.line <= loop.last]
            if not inside:
                continue
            if len(inside) > 1 or not isinstance(inside[0], ast.Dict) or inside[0].keys:
                return None
            results.append(name.id)
    first = [ast.unparse(one) for one in call.args[:2]]
    words = [word for word in call.keywords if word.arg not in (library.model, "num_boost_round")]
    texts = [*first, f"num_boost_round={ast.unparse(count)}", *map(ast.unparse, words)]
    made = "".join(f"{name} = {{}}; " for name in results)
    code = f"{made}{model} = {ast.unparse(call.func)}({', '.join(texts)})"
    return _Whole(code, tuple(results), number)


def _changes(settings: ast.expr, loop: Loop) -> bool:
    """Return whether the settings may differ between the iterations of a loop."""
    names = {one.id for one in ast.walk(settings) if isinstance(one, ast.Name)}
    for node in ast.walk(loop.node):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in names:
                return True
            case ast.Subscript(ctx=ast.Store() | ast.Del()) if root_name(node) in names:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if name in names and method in _CHANGES:
                    return True
    is_plain = isinstance(settings, (ast.Name, ast.Dict, ast.Attribute, ast.Constant))
    return not is_plain or any(isinstance(one, ast.Call) for one in ast.walk(settings))


def _is_same_data(
    levels: Sequence[Level],
    number: int,
    loop: Loop,
    made: ast.Assign,
    library: _Library,
    purity: Purity,
) -> bool:
    """Return whether each iteration makes the data set from the same arrays."""
    level, call = levels[number], made.value
    called = purity.program.called(call, level.place) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or called not in library.data or len(made.targets) != 1:
        return False
    inputs = ast.Tuple(elts=[*call.args, *(word.value for word in call.keywords)], ctx=ast.Load())
    changed = list(levels)
    changed[number] = level._replace(node=inputs)
    return Inputs(changed, number, loop, purity).of_call(number) is Value.SAME


def _is_only_read(model: str, train: ast.Call, body: Sequence[ast.AST]) -> bool:
    """Return whether no round keeps its model: `update` changes the model of the round before."""
    parents = {child: node for node in body for child in ast.iter_child_nodes(node)}
    for node in body:
        if not (isinstance(node, ast.Name) and node.id == model and isinstance(node.ctx, ast.Load)):
            continue
        outer = parents.get(node)
        if isinstance(outer, ast.keyword):
            outer = parents.get(outer)
        if isinstance(outer, ast.Call):
            method = outer.func.attr if isinstance(outer.func, ast.Attribute) else ""
            if outer is not train and method in _KEEPS:
                return False
        elif not isinstance(outer, (ast.Attribute, ast.Compare)):
            return False
    return True


def _found(one: _Round, level: Level, loop: Loop) -> CostlyOption:
    if one.whole is not None:
        return _found_whole(one, one.whole, level, loop)
    frame, file = level.frame, level.file
    module = dotted_name(one.call.func).rpartition(".")[0] or one.library.module
    given = {
        "module": module,
        "model": one.model,
        "data": one.data,
        "settings": ast.unparse(one.settings),
    }
    made = f"{ast.unparse(one.made)}; " if one.made else ""
    words = {
        "model": one.model,
        "before": f"{made}{one.model} = {one.library.begin.format(**given)}",
        "update": one.library.update.format(**given),
        "loop": f"{frame.file.rpartition('/')[2]}:{loop.line}",
        "train": ast.unparse(one.call.func),
    }
    if one.made:
        words["made"] = f"{frame.file.rpartition('/')[2]}:{one.made.lineno}"
    word = next((word for word in one.call.keywords if word.arg == "num_boost_round"), None)
    text = f"num_boost_round={file.text_of(word.value)}" if word else ast.unparse(one.call)
    return CostlyOption(
        name=f"{one.library.name}_and_data" if one.made else one.library.name,
        at=Frame(frame.file, frame.function, one.call.lineno, text),
        lines=(frame,),
        words=words,
    )


def _found_whole(one: _Round, whole: _Whole, level: Level, loop: Loop) -> CostlyOption:
    frame = level.frame
    call = ast.unparse(one.call.func)
    removed = [f"`{name} = {{}}`" for name in whole.results]
    results = "".join(
        f" `{name}` then has the values of all rounds: in the loop, read those of the round "
        f"`{whole.number}`, with `[{whole.number}]` instead of `[-1]`."
        for name in whole.results
    )
    return CostlyOption(
        name="rounds_with_evaluation",
        at=Frame(frame.file, frame.function, one.call.lineno, level.file.text_of(one.call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "before": whole.code,
            "removed": " and ".join([*removed, f"the call of `{call}`"]),
            "results": results,
        },
    )
