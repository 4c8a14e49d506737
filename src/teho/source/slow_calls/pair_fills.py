"""Finds loops in Python that compute an array or a nested list for all pairs of two numbers.

Examples are masks of attention and matrices of neighbours: `[[a[i] == a[j] for j in ...] for i in
...]`. NumPy computes all pairs with one expression, if each value depends only on its own pair.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, dotted_name, root_name
from teho.source.slow_calls.loop_parts import has_jit, imported_name, loads_of, names_in
from teho.source.slow_calls.vectors import Vectors, is_truth
from teho.source.stack import Level

__all__ = ["find_pair_fill"]

_LEAST = 8
_CONVERTS = frozenset(("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray"))
_MAKES = frozenset(("zeros", "empty", "ones", "full"))
_PLAIN = (ast.Compare, ast.BoolOp)


class _Pairs(NamedTuple):
    """A loop in a loop, or a comprehension in a comprehension."""

    node: ast.For | ast.ListComp
    rows: tuple[str, str]
    """The name of the first number, and how many there are."""
    columns: tuple[str, str]
    value: ast.expr
    target: str
    """The list or array that gets the values."""
    test: ast.expr | None = None
    """The condition under which a loop changes the array; None: always."""
    part: str = ""
    """The part of an array that the loops fill: `mask[:n, :n]`; empty: a list."""
    first: int = 0
    """Line of the first statement that is replaced."""


def find_pair_fill(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the loops on a stack that compute one pair at a time, or convert the result.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    if any(has_jit(one.function) for one in levels):
        return None
    for node in level.function.nodes:
        pairs = _pairs(node, level.function)
        if pairs is None or not _are_many(pairs, level.function):
            continue
        joined = _conversion(pairs, level) if not pairs.part else None
        if not pairs.part and joined is None:
            continue
        line = level.frame.line
        is_in = pairs.node.lineno <= line <= (pairs.node.end_lineno or 0)
        is_joined = joined is not None and joined.lineno <= line <= (joined.end_lineno or 0)
        if is_in or is_joined:
            return _found(pairs, joined, level)
    return None


def _pairs(node: ast.AST, function: Function) -> _Pairs | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() as outer):
            return _of_comprehension(outer, name, node.lineno)
        case ast.For(body=[*_, ast.For() as inner], orelse=[]):
            return _of_array(node, inner, function)
        case ast.For(
            body=[*_, ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name), "append"), [row]))],
            orelse=[],
        ):
            return _of_list(node, name, row, function)
    return None


def _of_comprehension(outer: ast.ListComp, name: str, first: int) -> _Pairs | None:
    rows, columns = _range(outer), _range(outer.elt)
    if rows is None or columns is None or not isinstance(outer.elt, ast.ListComp):
        return None
    return _Pairs(outer, rows, columns, outer.elt.elt, name, first=first)


def _of_list(outer: ast.For, name: str, row: ast.expr, function: Function) -> _Pairs | None:
    """Return `for i in range(n): rows.append([... for j in range(n)])`."""
    begin = function.assigned.get(name, ())
    rows, columns = _range(outer), _range(row)
    made = begin[0].value if len(begin) == 1 else None
    if not isinstance(made, ast.List) or made.elts or not isinstance(row, ast.ListComp):
        return None
    if rows is None or columns is None or made.lineno != outer.lineno - 1:
        return None
    return _Pairs(outer, rows, columns, row.elt, name, first=made.lineno)


def _of_array(outer: ast.For, inner: ast.For, function: Function) -> _Pairs | None:
    """Return loops that fill an array of NumPy: `mask[i, j] = a[i] == a[j]`."""
    rows, columns = _range(outer), _range(inner)
    if rows is None or columns is None or inner.orelse:
        return None
    last = inner.body[-1]
    test: ast.expr | None = None
    if isinstance(last, ast.If) and len(last.body) == 1 and not last.orelse:
        test = last.test
        last = last.body[0]
    match last:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            part = _part(target, rows, columns, function)
            if part:
                name = root_name(target)
                return _Pairs(outer, rows, columns, value, name, test, part, outer.lineno)
    return None


def _range(node: ast.AST) -> tuple[str, str] | None:
    """Return the number of a loop over `range(n)`, and `n`."""
    match node:
        case ast.For(
            target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[count])
        ):
            return name, ast.unparse(count)
        case ast.ListComp(
            generators=[
                ast.comprehension(
                    target=ast.Name(id=name),
                    iter=ast.Call(func=ast.Name(id="range"), args=[count]),
                    ifs=[],
                )
            ]
        ):
            return name, ast.unparse(count)
    return None


def _part(
    target: ast.Subscript, rows: tuple[str, str], columns: tuple[str, str], function: Function
) -> str:
    """Return the part of an array that two loops fill; empty if it is not an array of NumPy."""
    indexes: list[ast.expr] = []
    value: ast.expr = target
    while isinstance(value, ast.Subscript):
        part = value.slice
        indexes[:0] = part.elts if isinstance(part, ast.Tuple) else [part]
        value = value.value
    given = function.assigned.get(root_name(value), ())
    made = given[0].value if len(given) == 1 else None
    if not isinstance(value, ast.Name) or not isinstance(made, ast.Call):
        return ""
    if dotted_name(made.func).rpartition(".")[2] not in _MAKES or not _is_numpy(made, function):
        return ""
    texts = [ast.unparse(one) for one in indexes]
    if texts[-2:] != [rows[0], columns[0]] or {rows[0], columns[0]} & set(texts[:-2]):
        return ""
    return f"{value.id}[{', '.join([*texts[:-2], f':{rows[1]}', f':{columns[1]}'])}]"


def _is_numpy(call: ast.Call, function: Function) -> bool:
    return root_name(call.func) == imported_name("numpy", function, "")


def _are_many(pairs: _Pairs, function: Function) -> bool:
    """Return whether there may be many pairs, whose number does not depend on the first one."""
    if pairs.rows[0] == pairs.columns[0] or pairs.rows[0] in pairs.columns[1].split():
        return False
    names = {one.id for one in ast.walk(ast.parse(pairs.columns[1])) if isinstance(one, ast.Name)}
    if pairs.rows[0] in names:
        return False
    return all(
        may_iterate(
            Loop(pairs.node, 0, 0, 0, ast.parse(f"range({count})", mode="eval").body),
            function,
            _LEAST,
        )
        for count in (pairs.rows[1], pairs.columns[1])
    )


def _conversion(pairs: _Pairs, level: Level) -> ast.Call | None:
    """Return the call that makes an array of a list; None if the list has another use."""
    function = level.function
    name = pairs.target
    inside = {id(one) for one in ast.walk(pairs.node)}
    for _ in range(2):
        loads = [one for one in loads_of(name, function.nodes) if id(one) not in inside]
        if len(loads) != 1:
            return None
        call = next(
            (
                node
                for node in function.nodes
                if isinstance(node, ast.Call) and node.args and node.args[0] is loads[0]
            ),
            None,
        )
        if call is None:
            return None
        if _whole_name(call, function) in _CONVERTS:
            return call if len(call.args) == 1 else None
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
            return None
        inside = {id(call.func.value)}  # a list of the lists of several samples
        name = root_name(call.func)
    return None


def _whole_name(call: ast.Call, function: Function) -> str:
    root, _, rest = dotted_name(call.func).partition(".")
    for whole in ("torch", "numpy"):
        if root == imported_name(whole, function, ""):
            return f"{whole}.{rest}"
    return ""


def _values(pairs: _Pairs, function: Function) -> dict[str, ast.expr | None]:
    """Return the names to which the loops give a value; None: it is not one plain value."""
    first, last = pairs.node.lineno, pairs.node.end_lineno or 0
    found: dict[str, ast.expr | None] = {}
    for name, given in function.assigned.items():
        inside = [one for one in given if first <= one.line <= last]
        if inside and name not in (pairs.rows[0], pairs.columns[0]):
            is_plain = len(inside) == 1 and inside[0].loop is None
            found[name] = inside[0].value if is_plain else None
    return found


def _is_read_later(values: Iterable[str], pairs: _Pairs, function: Function) -> bool:
    """Return whether other code reads the names to which the loops give a value."""
    inside = {id(one) for one in ast.walk(pairs.node)}
    names = set(values) - {pairs.target}
    return any(id(one) not in inside for name in names for one in loads_of(name, function.nodes))


def _has_devices(pairs: _Pairs, function: Function) -> bool:
    """Return whether a value may be on a GPU, where NumPy cannot read it."""
    names = names_in(pairs.node)
    texts = (
        ast.unparse(one.value)
        for name in names
        for one in function.assigned.get(name, ())
        if one.value is not None
    )
    return any(".cuda(" in text or ".to(" in text or "device" in text for text in texts)


def _does_only_this(pairs: _Pairs) -> bool:
    """Return whether the loops do nothing but give names values, and store the results."""
    return all(
        isinstance(one, ast.Assign) and all(isinstance(it, ast.Name) for it in one.targets)
        for loop in _loops(pairs.node)
        for one in loop.body[:-1]
    )


def _loops(node: ast.AST) -> Iterator[ast.For]:
    if isinstance(node, ast.For):
        yield node
        yield from _loops(node.body[-1])


def _found(pairs: _Pairs, joined: ast.Call | None, level: Level) -> CostlyOption | None:
    numpy = imported_name("numpy", level.function, "numpy")
    values = _values(pairs, level.function)
    if _is_read_later(values, pairs, level.function) or _has_devices(pairs, level.function):
        return None
    vectors = Vectors(pairs.rows[0], pairs.columns[0], values, pairs.target, numpy)
    text = vectors.of(pairs.value)
    test = vectors.of(pairs.test, guarded=False) if pairs.test is not None else ""
    if text is None or test is None or not _does_only_this(pairs):
        return None
    if {pairs.rows[0], pairs.columns[0]} - vectors.used:
        return None
    if test and not isinstance(pairs.value, (ast.Constant, ast.Name)):
        return None
    if joined is not None and not _has_same_type(pairs.value, joined, level.function):
        return None
    text = text[1:-1] if text.startswith("(") and isinstance(pairs.value, _PLAIN) else text
    new = f"{pairs.target} = {text}"
    if pairs.part:
        new = f"{pairs.part}[{test}] = {text}" if test else f"{pairs.part} = {text}"
    (row, rows), (column, columns) = pairs.rows, pairs.columns
    index = f"{row}, {column} = {numpy}.arange({rows})[:, None], {numpy}.arange({columns})[None, :]"
    after = ""
    if joined is not None and ast.unparse(joined.args[0]) != pairs.target:
        stacked = f"{numpy}.stack({ast.unparse(joined.args[0])})"
        old = ast.unparse(joined)
        arrays = old.replace(ast.unparse(joined.args[0]), stacked, 1)
        after = f" At line {joined.lineno}, write `{arrays}` instead of `{old}`."
    frame = level.frame
    node = pairs.node
    return CostlyOption(
        name="pairs_one_by_one",
        at=Frame(frame.file, frame.function, pairs.value.lineno, level.file.text_of(pairs.value)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "lines": f"lines {pairs.first} to {node.end_lineno}"
            if node.end_lineno != pairs.first
            else f"line {pairs.first}",
            "index": index,
            "new": new,
            "after": after,
        },
    )


def _has_same_type(value: ast.expr, joined: ast.Call, function: Function) -> bool:
    """Return whether the conversion makes the same type of numbers of an array as of a list."""
    if is_truth(value) or any(word.arg == "dtype" for word in joined.keywords):
        return True
    return _whole_name(joined, function).startswith("numpy")
