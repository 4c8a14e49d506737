"""Python code that gives the first few elements of a sorted collection, without sorting all."""

from __future__ import annotations

import ast
from typing import NamedTuple

from teho.source.parsed import dotted_name
from teho.source.stack import Level

__all__ = ["Cut", "instead_of"]


class Cut(NamedTuple):
    """A cut of some elements at one end of a sorted collection."""

    node: ast.expr
    text: str
    """The number of elements, as Python."""
    number: int
    """The number of elements."""
    is_sure: bool
    is_end: bool
    """Whether it cuts the last elements."""
    is_reversed: bool = False
    """Whether the order of the elements is reversed before the cut."""
    skips: str = ""
    """The number of elements at the begin that it leaves out, as Python."""
    is_one: bool = False
    """Whether it is one element, and no list: `[0]`."""
    is_last_axis: bool = False
    """Whether it cuts each row: `[:, :5]`."""
    is_named: bool = False
    """Whether the sorted collection has a name, and the cut is elsewhere."""


def instead_of(
    call: ast.Call, name: str, cut: Cut, item: str, target: str, level: Level
) -> tuple[str, ...]:
    """Return lines of Python with the same result, without the sort; empty if it is not certain.

    Args:
        call: the sort.
        name: the whole name of its function.
        cut: the cut of its result.
        item: of `torch.sort`: the item of the pair that its statement takes.
        target: the name that gets the result; empty: it has none.
        level: the function.
    """
    words = {one.arg: one.value for one in call.keywords if one.arg}
    if len(words) < len(call.keywords):
        return ()
    if name == "sorted":
        return _of_sorted(call, words, cut, target, level)
    if name.startswith("numpy."):
        return _of_array(call, words, cut, target)
    if name.startswith("torch."):
        return _of_tensor(call, words, cut, item or ("indices" if "arg" in name else ""))
    return _of_table(call, words, cut)


def _of_sorted(
    call: ast.Call, words: dict[str, ast.expr], cut: Cut, target: str, level: Level
) -> tuple[str, ...]:
    descending = _flag(words.pop("reverse", None))
    key = words.pop("key", None)
    if descending is None or words or len(call.args) != 1 or cut.is_last_axis or cut.skips:
        return ()
    is_largest = descending is not (cut.is_end is not cut.is_reversed)
    is_descending = descending is not (cut.is_reversed and not cut.is_named)
    values = _array_of(call.args[0], key, level)
    if values and not cut.is_one:
        *first, last = _largest_of_array(
            "np", values, cut, target, is_largest=is_largest, is_descending=is_descending
        )
        return *first, f"{last}.tolist()"
    items = ast.unparse(call.args[0])
    with_key = f", key={ast.unparse(key)}" if key is not None else ""
    if cut.is_one:
        return () if cut.is_named else (f"{'max' if is_largest else 'min'}({items}{with_key})",)
    function = "nlargest" if is_largest else "nsmallest"
    back = "" if is_largest is is_descending else "[::-1]"
    return (f"heapq.{function}({cut.text}, {items}{with_key}){back}",)


def _array_of(items: ast.expr, key: ast.expr | None, level: Level) -> str:
    """Return the array whose values are the keys of `sorted(range(n), key=lambda i: array[i])`."""
    match items, key:
        case (
            ast.Call(func=ast.Name(id="range"), args=[_]),
            ast.Lambda(
                args=ast.arguments(args=[ast.arg(arg=one)]),
                body=ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=number)),
            ),
        ) if one == number:
            given = level.function.assigned.get(name, [])
            value = given[0].value if len(given) == 1 and given[0].loop is None else None
            is_array = (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and (value.func.attr == "numpy" or dotted_name(value.func).startswith("np."))
            )
            return name if is_array else ""
    return ""


def _largest_of_array(
    root: str, values: str, cut: Cut, target: str, *, is_largest: bool, is_descending: bool
) -> tuple[str, ...]:
    """Return the lines that give the places of the largest or smallest values, in order."""
    top = target or "top"
    rows, along = (":, ", ", axis=1") if cut.is_last_axis else ("", "")
    count = cut.text if cut.text.isidentifier() or cut.text.isdigit() else f"({cut.text})"
    if is_largest:
        first = f"{root}.argpartition({values}, -{count}{along})[{rows}-{count}:]"
    else:
        first = f"{root}.argpartition({values}, {_less_one(cut)}{along})[{rows}:{cut.text}]"
    back = f"[{rows}::-1]" if is_descending else ""
    skip = f"[{rows}{cut.skips}:]" if cut.skips and not cut.is_named else ""
    if cut.is_last_axis:
        chosen = f"{root}.take_along_axis({values}, {top}, axis=1)"
        order = f"{root}.argsort({chosen}, axis=1){back}"
        return f"{top} = {first}", f"{top} = {root}.take_along_axis({top}, {order}, axis=1){skip}"
    return f"{top} = {first}", f"{top} = {top}[{root}.argsort({values}[{top}]){back}]{skip}"


def _of_array(call: ast.Call, words: dict[str, ast.expr], cut: Cut, target: str) -> tuple[str, ...]:
    axis = words.pop("axis", call.args[1] if len(call.args) > 1 else None)
    axis_text = ast.unparse(axis) if axis is not None else ""
    if words or len(call.args) > 2 or axis_text not in ("", "1", "-1"):
        return ()  # a stable order may be needed
    if axis_text == "1" and not cut.is_last_axis:
        return ()
    root = dotted_name(call.func).rpartition(".")[0] or "np"
    values = ast.unparse(call.args[0])
    is_largest = cut.is_end is not cut.is_reversed
    is_descending = cut.is_reversed and not cut.is_named
    what = dotted_name(call.func).rpartition(".")[2]
    if cut.is_one:
        if cut.is_last_axis or cut.is_named:
            return ()
        extreme = "max" if is_largest else "min"
        return (f"{root}.{'arg' if what == 'argsort' else ''}{extreme}({values})",)
    if what == "argsort":
        before: tuple[str, ...] = ()
        inner = values.removeprefix("-")
        if not all(part.isidentifier() for part in inner.split(".")):
            before, values = (f"values = {values}",), "values"
        return *before, *_largest_of_array(
            root, values, cut, target, is_largest=is_largest, is_descending=is_descending
        )
    rows, along = (":, ", ", axis=1") if cut.is_last_axis else ("", "")
    count = cut.text if cut.text.isidentifier() or cut.text.isdigit() else f"({cut.text})"
    part = f"-{count}{along})[{rows}-{count}:]"
    if not is_largest:
        part = f"{_less_one(cut)}{along})[{rows}:{cut.text}]"
    back = f"[{rows}::-1]" if is_descending else ""
    skip = f"[{rows}{cut.skips}:]" if cut.skips and not cut.is_named else ""
    return (f"{root}.sort({root}.partition({values}, {part}{along}){back}{skip}",)


def _less_one(cut: Cut) -> str:
    return str(cut.number - 1) if cut.text.isdigit() else f"{cut.text} - 1"


def _of_tensor(call: ast.Call, words: dict[str, ast.expr], cut: Cut, item: str) -> tuple[str, ...]:
    descending = _flag(words.pop("descending", None))
    axis = words.pop("dim", call.args[1] if len(call.args) > 1 else None)
    axis_text = ast.unparse(axis) if axis is not None else ""
    if descending is None or words or len(call.args) > 2 or cut.is_end or cut.is_reversed:
        return ()
    fits = ("", "-1", "1") if cut.is_last_axis else ("", "-1", "0")
    if cut.is_one or cut.skips or axis_text not in fits:
        return ()
    root = dotted_name(call.func).rpartition(".")[0] or "torch"
    dim = f", dim={axis_text}" if axis_text else ""
    least = "" if descending else ", largest=False"
    pick = f".{item}" if item else ""
    return (f"{root}.topk({ast.unparse(call.args[0])}, {cut.text}{dim}{least}){pick}",)


def _of_table(call: ast.Call, words: dict[str, ast.expr], cut: Cut) -> tuple[str, ...]:
    ascending = _flag(words.pop("ascending", None), default=True)
    by = words.pop("by", call.args[0] if call.args else None)
    is_head = isinstance(cut.node, ast.Call) and not cut.is_end
    if ascending is None or words or len(call.args) > 1 or not is_head:
        return ()
    name = by.value if isinstance(by, ast.Constant) else None
    if by is not None and not isinstance(name, str):
        return ()
    table = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    column = f', "{name}"' if isinstance(name, str) else ""
    return (f"{table}.{'nsmallest' if ascending else 'nlargest'}({cut.text}{column})",)


def _flag(node: ast.expr | None, *, default: bool = False) -> bool | None:
    """Return the value of a flag; None if it is not in the source."""
    if node is None:
        return default
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None
