"""Finds group-bys of pandas with a row for each possible combination of categories.

If the keys of `groupby` are categorical, `observed=False` makes a row also for each combination
that does not occur: three keys with 200 categories each have 8 million combinations. The stacks
show that pandas makes these rows; the source shows whether the program removes them again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import Function
from teho.source.stack import Level

__all__ = ["find_empty_groups"]

_PANDAS = lazy_pattern(r"/pandas/core/")
_FILTERS = frozenset(("dropna", "query"))
_NEEDS_ALL = frozenset(
    ("unstack", "pivot", "pivot_table", "fillna", "reindex", "to_xarray", "to_numpy", "values")
)
"""Methods of tables that have a place for each combination."""
_DEEPEST = 6


def find_empty_groups(levels: Sequence[Level], frames: Sequence[Frame]) -> CostlyOption | None:
    """Return the group-by whose table a stack computes or uses.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
    """
    level = levels[-1]
    if level.node is None or not any(_PANDAS.search(one.file) for one in frames):
        return None
    call = _grouped(level.node, level.function, level.frame.line, 0)
    if call is None or not all(word.arg for word in call.keywords):
        return None
    given = {word.arg: word.value for word in call.keywords}
    observed, keys = given.get("observed"), call.args[0] if call.args else given.get("by")
    if keys is None or _is_one(keys):
        return None
    if observed is not None and ast.unparse(observed) != "False":
        return None
    file, frame = level.file, level.frame
    text = f"observed={file.text_of(observed)}" if observed is not None else file.text_of(call)
    line = observed.lineno if observed is not None else call.lineno
    return CostlyOption(
        name="groups_removed_again"
        if _removes(call, level.function)
        else "groups_perhaps_not_needed",
        at=Frame(frame.file, frame.function, line, text),
        lines=(frame,),
        words={"call": str(call.lineno)},  # each group-by is an option of its own
    )


def _is_one(keys: ast.expr) -> bool:
    """Return whether a group-by has only one key: then it has no combinations."""
    match keys:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return len(items) < 2
        case ast.Constant() | ast.Subscript() | ast.Attribute() | ast.Lambda():
            return True
    return False


def _grouped(node: ast.expr, function: Function, line: int, depth: int) -> ast.Call | None:
    """Return the call of `groupby` whose groups or table an expression uses."""
    if depth > _DEEPEST:
        return None
    match node:
        case ast.Call(func=ast.Attribute(attr="groupby")):
            return node
        case ast.Call(func=ast.Attribute(value=value)):
            return _grouped(value, function, line, depth + 1)
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            return _grouped(value, function, line, depth + 1)
        case ast.Compare(left=left):
            return _grouped(left, function, line, depth + 1)
        case ast.Name(id=name):
            before = [one for one in function.assigned.get(name, []) if one.line < line]
            last = max(before, key=lambda one: one.line, default=None)
            if last is None or last.value is None or last.loop or _is_filtered(last.value):
                return None
            return _grouped(last.value, function, last.line, depth + 1)
    return None


def _is_filtered(node: ast.expr) -> bool:
    """Return whether an expression keeps only some rows: `table[table["n"] > 0]`."""
    return any(_filters(one) for one in ast.walk(node))


def _filters(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(slice=ast.Compare(ops=[ast.Gt() | ast.NotEq() | ast.GtE()])):
            return True
        case ast.Subscript(value=ast.Attribute(attr="loc"), slice=ast.Compare()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _FILTERS
    return False


def _removes(call: ast.Call, function: Function) -> bool:
    """Return whether a function removes rows of the table, and certainly does not need them."""
    nodes = list(_that_use(call, function))
    if any(isinstance(one, ast.Attribute) and one.attr in _NEEDS_ALL for one in nodes):
        return False
    return any(map(_filters, nodes))


def _that_use(call: ast.Call, function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of the statements that have the call, or a name with its result."""
    names: set[str] = set()
    kinds = (ast.Assign, ast.Return, ast.Expr)
    statements = [one for one in function.nodes if isinstance(one, kinds)]
    for statement in sorted(statements, key=lambda one: one.lineno):
        inside = list(ast.walk(statement))
        uses = any(isinstance(one, ast.Name) and one.id in names for one in inside)
        if call in inside or uses:
            yield from inside
            if isinstance(statement, ast.Assign):
                names |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
