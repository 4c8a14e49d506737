"""Finds searches of scikit-learn that fit the first steps of a pipeline again for each setting.

If the search tries only settings of the last step, the other steps give the same result for each
setting. With `memory=`, a pipeline keeps these results.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import length
from teho.source.options.uses import assigned_value, name_of, table_of
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_refitted_steps"]

_SEARCHES = lazy_pattern(r"sklearn\.model_selection\.(Halving)?(Grid|Random(ized)?)SearchCV")
_TABLES = ("param_grid", "param_distributions")
_PIPELINES = ("sklearn.pipeline.Pipeline", "sklearn.pipeline.make_pipeline")
_LEAST_SETTINGS = 3
_DEEPEST = 4


def find_refitted_steps(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the pipeline of a search on a stack whose first steps are fitted for each setting.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files.
    """
    for level in levels:
        match level.node:
            case ast.Call(func=ast.Attribute(value=fitted, attr="fit")):
                pass
            case _:
                continue
        search, at = _value(fitted, level.place, program)
        kind = name_of(search.func, at, program) if isinstance(search, ast.Call) else ""
        if not isinstance(search, ast.Call) or not _SEARCHES.fullmatch(kind):
            continue
        keywords = {word.arg: word.value for word in search.keywords}
        given = [*search.args, None, None]
        model = given[0] or keywords.get("estimator")
        table = given[1] or next((keywords[one] for one in _TABLES if one in keywords), None)
        if model is None or table is None:
            return None
        pipeline, place = _value(model, at, program)
        steps = _steps(pipeline, place, program)
        searched = _searched(table, at, program)
        if (
            not isinstance(pipeline, ast.Call)
            or len(steps) < 2
            or searched is None
            or searched[0] != {steps[-1]}
        ):
            return None
        count = searched[1] if kind.endswith(".GridSearchCV") else None
        if count is not None and count < _LEAST_SETTINGS:
            return None
        file = program.file(place.path)
        if file is None or any(_has_memory(node) for node in ast.walk(file.module.node)):
            return None
        name = place.function.name or "<module>"
        return CostlyOption(
            name="steps_fitted_again",
            at=Frame(place.path, name, pipeline.lineno, file.text_of(pipeline)),
            lines=(level.frame,),
            words={
                "search": level.frame.short_place,
                "name": ast.unparse(pipeline.func),
                "last": steps[-1],
                "settings": f"the {count} settings" if count else "the settings",
            },
        )
    return None


def _value(
    node: ast.expr, place: Place, program: Program, depth: int = 0
) -> tuple[ast.expr, Place]:
    """Return the expression that gives a value, also in a function that returns only this value.

    The second item is the function with this expression.
    """
    if depth > _DEEPEST:
        return node, place
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, place.function)
        if found is not None:
            return _value(found[0], Place(place.path, found[1]), program, depth + 1)
    if isinstance(node, ast.Call):
        called = program.called(node, place)
        if isinstance(called, Place):
            nodes = called.function.nodes
            returned = [one.value for one in nodes if isinstance(one, ast.Return)]
            if len(returned) == 1 and returned[0] is not None:
                return _value(returned[0], called, program, depth + 1)
    return node, place


def _steps(pipeline: ast.expr, place: Place, program: Program) -> list[str]:
    """Return the names of the steps of a pipeline; empty: they are not in the source."""
    if not isinstance(pipeline, ast.Call):
        return []
    name = name_of(pipeline.func, place, program)
    if name not in _PIPELINES or any(isinstance(one, ast.Starred) for one in pipeline.args):
        return []
    if name.endswith("make_pipeline"):
        made = [one.func for one in pipeline.args if isinstance(one, ast.Call)]
        names = [ast.unparse(one).rpartition(".")[2].lower() for one in made]
        return names if len(names) == len(pipeline.args) == len(set(names)) else []
    first = pipeline.args[0] if pipeline.args else None
    given = first or next((one.value for one in pipeline.keywords if one.arg == "steps"), None)
    steps = _value(given, place, program)[0] if given is not None else None
    if not isinstance(steps, (ast.List, ast.Tuple)):
        return []
    found = []
    for one in steps.elts:
        match one:
            case ast.Tuple(elts=[ast.Constant(value=str(name)), _]):
                found.append(name)
            case _:
                return []
    return found


def _searched(
    table: ast.expr, place: Place, program: Program
) -> tuple[set[str], int | None] | None:
    """Return the steps whose settings a search tries, and the number of combinations.

    The number is None if the source does not say it. None: the steps are not in the source.
    """
    value, at = _value(table, place, program)
    tables = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    steps: set[str] = set()
    counts: list[int | None] = []
    for one in tables:
        # By its name, to see whether the program changes it.
        settings = table_of(*((table, place.function) if one is value else (one, at.function)))
        if not settings:
            return None
        steps |= {key.partition("__")[0] for key in settings}
        lengths = [length(values, at.function) for values in settings.values()]
        known = [number for number in lengths if number is not None]
        counts.append(math.prod(known) if len(known) == len(lengths) else None)
    numbers = [one for one in counts if one is not None]
    return steps, sum(numbers) if len(numbers) == len(counts) else None


def _has_memory(node: ast.AST) -> bool:
    """Return whether some code may let a pipeline keep the results of its steps."""
    match node:
        case ast.keyword(arg="memory") | ast.Attribute(attr="memory"):
            return True
    return False
