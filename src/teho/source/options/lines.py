"""Which lines on the stacks of a process use an option."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from teho.model.stack import Frame, is_library
from teho.source.options.numbers import NumberTypes, Origin
from teho.source.options.results import Parents
from teho.source.options.table import Option, fits
from teho.source.options.uses import Use
from teho.source.parsed import SourceFile, root_name
from teho.source.program import Place

__all__ = ["Lines"]


class Lines:
    """The program's lines on some stacks.

    Args:
        stacks: the stacks, innermost frame first.
    """

    def __init__(self, stacks: Sequence[Sequence[Frame]]) -> None:
        self._stacks = stacks
        own = [[frame for frame in stack if not is_library(frame.file)] for stack in stacks]
        self._own = _in_order(frame for each in own for frame in each)
        self.files = frozenset(frame.file for frame in self._own)
        """Their files."""
        self._innermost = _in_order(each[0] for each in own if each)

    def has_text(self, patterns: Sequence[str]) -> bool:
        """Return whether the text of an innermost line of the program fits one of some patterns."""
        found = re.compile("|".join(patterns))
        return any(found.search(frame.text) for frame in self._innermost)

    def of_use(self, option: Option, use: Use, parents: Parents) -> list[Frame]:
        """Return the lines whose time an option explains; none if it explains other lines too."""
        if option.rows_of:
            return self._of_rows(option, use)
        if not option.here:
            return []
        item = parents.get(use.node)
        is_block = isinstance(item, ast.withitem) and item.context_expr is use.node
        return self._at(parents[item] if item and is_block else use.node, use.place.path)

    def of_model(self, use: Use, parents: Parents) -> list[Frame]:
        """Return the lines that train the model of a call: of `model = SVC()`, `model.fit(x)`.

        The call may be an argument of others, such as `make_pipeline(StandardScaler(), SVC())`, and
        the model one of `cross_val_score`. None if the name may have another model.
        """
        node: ast.AST = use.node
        while isinstance(parents.get(node), (ast.Call, ast.List, ast.Tuple, ast.keyword)):
            node = parents[node]
        assigned = parents.get(node)
        if not isinstance(assigned, ast.Assign) or len(assigned.targets) != 1:
            return self._of_method(node, use, parents)
        target, function = assigned.targets[0], use.place.function
        if not isinstance(target, ast.Name) or len(function.assigned.get(target.id, ())) != 1:
            return []
        trained = (
            one
            for one in function.nodes
            if isinstance(one, ast.Call)
            and (_trains(one, target.id) or target.id in map(root_name, one.args))
        )
        return _in_order(frame for one in trained for frame in self._at(one, use.place.path))

    def _of_method(self, node: ast.AST, use: Use, parents: Parents) -> list[Frame]:
        """Return the lines of `SVC(probability=True).fit(x)`."""
        method = parents.get(node)
        call = parents.get(method) if isinstance(method, ast.Attribute) else None
        is_fit = isinstance(method, ast.Attribute) and method.attr.startswith("fit")
        return self._at(call, use.place.path) if is_fit and isinstance(call, ast.Call) else []

    def _at(self, node: ast.AST, path: str) -> list[Frame]:
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        return [one for one in self._own if one.file == path and first <= one.line <= last]

    def _of_rows(self, option: Option, use: Use) -> list[Frame]:
        """Return the lines that convert a part of a row, `np.array(row["x"])`, and get the row.

        The stacks show that a line gets rows: it calls a function of `rows_of`. Or a library gets
        the rows, and calls the function with them, such as a data loader its `collate_fn`.
        """
        converted = self._at(use.node, use.place.path)
        lines = set(_lines_of_rows(use))
        rows, getters, callers = set(), set(), set()
        for inner, outer in (pair for stack in self._stacks for pair in pairwise(stack)):
            is_row = fits(option.rows_of, inner.file)
            if is_row and outer.file == use.place.path and outer.line in lines:
                rows.add(outer)
            elif is_row and not fits(option.rows_of, outer.file):
                getters.add(outer.file)
            elif inner in converted and is_library(outer.file):
                callers.add(outer.file)
        is_given = _is_parameter(use) and not getters.isdisjoint(callers)
        rest = [one for one in self._own if one in rows and one not in converted]
        return [*converted, *rest] if converted and (rows or is_given) else []

    def of_numbers(
        self, types: NumberTypes, files: Mapping[str, SourceFile]
    ) -> dict[Origin, list[Frame]]:
        """Return where the program chooses a type of numbers, each with the lines that use it."""
        found: dict[Origin, list[Frame]] = {}
        for frame in self._innermost:
            file = files.get(frame.file)
            node = _active(file, frame) if file is not None else None
            if file is None or node is None:
                continue
            origin = types.computed_with(node, Place(frame.file, file.function_at(frame.line)))
            if origin is not None:
                found.setdefault(origin, []).append(frame)
        return found


def _in_order(frames: Iterable[Frame]) -> list[Frame]:
    return sorted(set(frames), key=lambda frame: (frame.file, frame.line, frame.text))


def _parts_of_rows(use: Use) -> Iterator[ast.Subscript]:
    """Yield the parts of rows that a call converts: `row["x"]`."""
    for part in (node for one in use.arguments[:1] for node in ast.walk(one)):
        match part:
            case ast.Subscript(slice=ast.Constant(value=str())):
                yield part


def _lines_of_rows(use: Use) -> Iterator[int]:
    """Yield the lines on which the rows may come from a data set."""
    for part in _parts_of_rows(use):
        yield part.lineno
        if isinstance(part.value, ast.Name):
            given = use.place.function.assigned.get(part.value.id, [])
            yield from (one.loop.line if one.loop else one.line for one in given)


def _is_parameter(use: Use) -> bool:
    """Return whether the rows are a parameter of the function: `[row["x"] for row in rows]`."""
    function = use.place.function
    names = {part.value.id for part in _parts_of_rows(use) if isinstance(part.value, ast.Name)}
    given = [one for name in names for one in function.assigned.get(name, [])]
    roots = {root_name(one.value) for one in given if one.value is not None and one.loop}
    return bool(names) and (roots or names) <= set(function.params)


def _trains(call: ast.Call, model: str) -> bool:
    method = call.func
    is_fit = isinstance(method, ast.Attribute) and method.attr.startswith("fit")
    return is_fit and root_name(method) == model


def _active(file: SourceFile, frame: Frame) -> ast.AST | None:
    """Return the expression that a frame executes, or `x += y`; None if it is not clear."""
    if not 0 < frame.line <= len(file.lines):
        return None
    changes = (
        one
        for one in file.function_at(frame.line).nodes
        if isinstance(one, ast.AugAssign) and one.lineno == frame.line
    )
    found = (one for one in changes if file.text_of(one) == frame.text)
    return next(found, None) or file.active(frame.line, frame.text)
