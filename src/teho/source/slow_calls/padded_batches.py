"""Finds batches that are padded to a fixed width, and batches whose width changes.

`tokens = np.zeros((len(texts), 512))` with `tokens[row, :len(text)] = text` in a loop makes batches
that are wider than their longest item. `np.zeros((len(texts), longest))` makes batches of different
widths: each new width is a new size of the input for the model.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, SourceFile, dotted_name
from teho.source.slow_calls.item_lengths import is_length, longest_of

__all__ = ["find_padded_batches"]

_MODELS = frozenset(
    ("torch", "transformers", "lightning", "pytorch_lightning", "sentence_transformers", "fairseq")
)
"""Libraries whose models compute with the padding. JAX and TensorFlow compile for each width."""
_STATIC = lazy_pattern(
    rb"torch\.compile|\.compile\(|CUDAGraph|torch_xla|make_graphed_callables|jax\.jit|tf\.function"
    rb"|torch_compile|tensorrt|onnxruntime"
)
"""A program with such words may need the same width for all batches."""
_MAKERS = frozenset(("zeros", "ones", "full", "empty", "new_zeros", "new_full", "new_ones"))
_METHODS = frozenset(("new_zeros", "new_full", "new_ones"))
_ARRAYS = frozenset(("numpy", "torch", "cupy"))
_FIXED_NAME = lazy_pattern(r"(?i)(^|_)(max|maximum|longest|seq|sequence|context|block|fixed|pad)")
_OF_BATCH = lazy_pattern(r"(?i)collate|batch")
_NARROWEST = 32
_DEEPEST = 4
_LONGEST_TEXT = 80


class _Filled(NamedTuple):
    """An array whose rows a loop fills, each up to its own length."""

    function: Function
    call: ast.Call
    """Makes the array."""
    width: ast.expr
    """The size of the axis that is filled in part."""
    end: ast.expr
    """The length of one item."""
    line: int
    """The line that fills a row."""

    @property
    def longest(self) -> str:
        """The longest item, `max(len(text) for text in texts)`; empty if it cannot be written."""
        return longest_of(self.end, self.line, self.call.lineno, self.function)


@functools.lru_cache(maxsize=64)
def find_padded_batches(path: str, file: SourceFile) -> tuple[CostlyOption, ...]:
    """Return the batches that a file pads."""
    roots = {name.partition(".")[0] for one in file.module.every() for name in one.imports.values()}
    if not roots & _MODELS:
        return ()
    found: list[CostlyOption] = []
    is_static = any(_STATIC.search(line) for line in file.lines)
    for function in file.module.every():
        for one in _filled(function):
            if _is_longest(one.width, function) and _is_of_batch(function, one.call, file):
                axes = str(len(_sizes(one.call)))
                found.append(_option("width_changes", path, file, function, one.width, axes=axes))
            elif _is_fixed(one.width, function) and not is_static:
                found += _padded(one, path, file)
        for node in function.nodes:
            if not is_static and _fills_item(node, function) and isinstance(node, ast.expr):
                found.append(_option("padded_items", path, file, function, node))
            if not isinstance(node, ast.Call):
                continue
            if _last(node) == "pad_sequence":
                is_batch = _is_of_batch(function, node, file)
                if is_batch or not is_static:
                    name = "width_changes" if is_batch else "padded_once"
                    found.append(_option(name, path, file, function, node))
            elif _has_random_size(node, function):
                found.append(_option("width_changes", path, file, function, node, axes="4"))
            elif not is_static and _pads_to_maximum(node):
                found.append(_option("padded_to_maximum", path, file, function, node))
    return tuple(found)


def _padded(one: _Filled, path: str, file: SourceFile) -> Iterator[CostlyOption]:
    function = one.function
    if not _is_of_batch(function, one.call, file):
        yield _option("padded_once", path, file, function, one.call)
        return
    named = _of_name(one, path)
    if named is not None:
        yield _option("padded_to_name", path, file, function, one.call, **named)
        return
    width = ast.unparse(one.width)
    same = [each for each in _filled(function) if ast.unparse(each.width) == width]
    calls = {id(each.call): each.call for each in same}
    new = next((name for name in ("longest", "longest_item") if not function.knows(name)), "")
    if not (one.longest and new) or _is_used_elsewhere(width, list(calls.values()), function):
        yield _option("padded_somehow", path, file, function, one.call)
        return
    first = min(call.lineno for call in calls.values())
    before = next(each.longest for each in same if each.call.lineno == first)
    if before:
        place = f"{path.rpartition('/')[2]}:{first}"
        words = {"first": place, "before": f"{new} = {before}", "old": width, "new": new}
        yield _option("padded_to_width", path, file, function, one.call, **words)


def _of_name(one: _Filled, path: str) -> dict[str, str] | None:
    """Return the words for a width with a name of its own: `width = MAX_LEN`."""
    name = one.width.id if isinstance(one.width, ast.Name) else ""
    given = one.function.assigned.get(name, [])
    value = given[0].value if len(given) == 1 and given[0].loop is None else None
    longest = longest_of(one.end, one.line, given[0].line, one.function) if value else ""
    if (
        value is None
        or not longest
        or one.function.loops_at(one.call.lineno) != (one.function.loops_at(given[0].line))
    ):
        return None
    place = f"{path.rpartition('/')[2]}:{given[0].line}"
    return {"at_name": place, "old": f"{name} = {ast.unparse(value)}", "new": f"{name} = {longest}"}


def _is_used_elsewhere(width: str, calls: Sequence[ast.Call], function: Function) -> bool:
    """Return whether a function uses a width for more than these arrays and for cutting items."""
    known: set[int] = set()
    for node in function.nodes:
        is_limit = isinstance(node, ast.Call) and _last(node) == "min"
        if isinstance(node, ast.Slice) or is_limit or node in calls:
            known.update(id(one) for one in ast.walk(node))
    return any(
        isinstance(node, ast.expr) and id(node) not in known and ast.unparse(node) == width
        for node in function.nodes
    )


def _option(
    name: str, path: str, file: SourceFile, function: Function, node: ast.expr, **words: str
) -> CostlyOption:
    text = " ".join(file.text_of(node).split())[:_LONGEST_TEXT]
    at = Frame(path, function.name or "<module>", node.lineno, text)
    return CostlyOption(name=name, at=at, lines=(), words=words)


# ---- arrays whose rows are filled up to different lengths ----


def _filled(function: Function) -> Iterator[_Filled]:
    """Yield the arrays of a function of which a loop fills a part of each row."""
    made = {
        node.targets[0].id: node.value
        for node in function.nodes
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and _makes_array(node.value, function)
    }
    seen: set[tuple[str, int]] = set()
    for node in function.nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
            continue
        owner, parts = _parts(node)
        call = made.get(owner)
        sizes = _sizes(call) if call is not None else []
        ends = [
            (place, part.upper)
            for place, part in enumerate(parts)
            if isinstance(part, ast.Slice)
            and part.lower is None
            and part.step is None
            and part.upper is not None
            and is_length(part.upper, function)
        ]
        if call is None or len(ends) != 1 or isinstance(parts[0], ast.Slice):
            continue
        place, end = ends[0]
        if any(isinstance(one, ast.Constant) and one.value is ... for one in parts[:place]):
            place += len(sizes) - len(parts)
        if not 0 < place < len(sizes) or (owner, place) in seen:
            continue
        seen.add((owner, place))
        yield _Filled(function, call, sizes[place], end, node.lineno)


def _parts(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name and all indexes of `x[i, :n]` or `x[i][:n]`."""
    parts: list[ast.expr] = []
    while isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [*inner, *parts]
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), parts


def _last(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _makes_array(call: ast.Call, function: Function) -> bool:
    name = _last(call)
    if name not in _MAKERS:
        return False
    return name in _METHODS or _root(call.func, function) in _ARRAYS


def _root(node: ast.expr, function: Function) -> str:
    """Return the library of a name: `numpy` of `np.zeros`."""
    root = dotted_name(node).partition(".")[0]
    outer: Function | None = function
    while outer is not None:
        if root in outer.imports:
            return outer.imports[root].partition(".")[0]
        outer = outer.parent
    return ""


def _sizes(call: ast.Call) -> list[ast.expr]:
    """Return the sizes of the axes of a new array; empty if they are not in the source."""
    words = {word.arg: word.value for word in call.keywords}
    first = call.args[0] if call.args else words.get("shape", words.get("size"))
    if isinstance(first, (ast.Tuple, ast.List)):
        return list(first.elts)
    return list(call.args) if len(call.args) > 1 and _last(call) != "full" else []


# ---- widths ----


def _is_fixed(width: ast.expr, function: Function, depth: int = 0) -> bool:
    """Return whether a width is the same for all batches."""
    match width:
        case ast.Constant(value=int(value)):
            return value >= _NARROWEST
        case ast.Name(id=name):
            found = assigned_value(name, function)
            if found is not None and depth < _DEEPEST:
                return _is_fixed(found[0], found[1], depth + 1)
            default = function.default(name) if name in function.params else None
            return isinstance(default, ast.Constant) and _is_fixed(default, function, depth + 1)
        case ast.Attribute(attr=name):
            return _FIXED_NAME.search(name) is not None and not _is_computed(name, function)
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return _FIXED_NAME.search(name) is not None
    return False


def _is_computed(name: str, function: Function) -> bool:
    """Return whether a file computes an attribute from its data: `self.max_len = max(…)`."""
    for node in ast.walk(function.module.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                is_it = isinstance(target, ast.Attribute) and target.attr == name
                if is_it and any(isinstance(one, ast.Call) for one in ast.walk(node.value)):
                    return True
    return False


def _is_longest(width: ast.expr, function: Function) -> bool:
    """Return whether a width is the length of the longest item: `max(len(x) for x in batch)`."""
    if isinstance(width, ast.Name):
        found = assigned_value(width.id, function)
        return found is not None and found[1] is function and _is_longest(found[0], function)
    match width:
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            return _is_longest(inner, function)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
            return _is_longest(inner, function)
        case ast.Call(func=ast.Name(id="max"), args=[ast.expr() as inner]):
            return any(is_length(one, function) for one in ast.walk(inner)) or _are_lengths(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="max"), args=[]):
            return _are_lengths(inner)
    return False


def _are_lengths(node: ast.AST) -> bool:
    return "len" in dotted_name(node).lower()


# ---- whether code runs for each batch ----


def _is_of_batch(function: Function, node: ast.expr, file: SourceFile) -> bool:
    """Return whether an expression runs for each batch, not once for all data."""
    return bool(function.loops_at(node.lineno)) or _runs_again(function, file, 0)


def _runs_again(function: Function, file: SourceFile, depth: int) -> bool:
    """Return whether a loop calls a function, or a data loader does."""
    if _OF_BATCH.search(function.name):
        return True
    if not function.name or depth > _DEEPEST:
        return False
    for caller in file.module.every():
        for node in caller.nodes:
            match node:
                case ast.Call(keywords=words) if any(
                    word.arg == "collate_fn" and dotted_name(word.value).endswith(function.name)
                    for word in words
                ):
                    return True
                case ast.Call() if _last(node) == function.name and caller is not function:
                    if caller.loops_at(node.lineno) or _runs_again(caller, file, depth + 1):
                        return True
    return False


# ---- calls ----


def _pads_to_maximum(call: ast.Call) -> bool:
    """Return whether a tokenizer pads all texts to the largest length."""
    for word in call.keywords:
        match word:
            case ast.keyword(arg="padding", value=ast.Constant(value="max_length")):
                return True
            case ast.keyword(arg="pad_to_max_length", value=ast.Constant(value=True)):
                return True
    return False


def _fills_item(node: ast.AST, function: Function) -> bool:
    """Return whether code fills an item up: `[0] * (512 - len(x))`, `np.pad(x, (0, 512 - n))`."""
    match node:
        case ast.BinOp(left=ast.List(), op=ast.Mult(), right=size):
            sizes = [size]
        case ast.Call(args=[_, ast.Tuple(elts=sizes), *_]) if _last(node) == "pad":
            pass
        case _:
            return False
    return any(_is_rest(one, function) for one in sizes)


def _is_rest(size: ast.expr, function: Function) -> bool:
    match size:
        case ast.BinOp(left=width, op=ast.Sub(), right=length):
            parts = [length]
            if isinstance(length, ast.Name):
                parts = [one.value for one in function.assigned.get(length.id, []) if one.value]
            is_len = any(_calls_len(one) for one in parts)
            return is_len and _is_fixed(width, function)
    return False


def _calls_len(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) == "len"


def _has_random_size(call: ast.Call, function: Function) -> bool:
    """Return whether images get a random size in each iteration: training at several scales."""
    if _last(call) not in {"interpolate", "resize"} or not function.loops_at(call.lineno):
        return False
    sizes = [word.value for word in call.keywords if word.arg in {"size", "scale_factor"}]
    for size in [*sizes, *call.args[1:2]]:
        for one in ast.walk(size):
            found = assigned_value(one.id, function) if isinstance(one, ast.Name) else None
            is_inside = found is not None and bool(function.loops_at(found[0].lineno))
            if found is not None and is_inside and _is_random(found[0]):
                return True
    return False


def _is_random(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Call) and re.match(r"choice|rand|uniform|integers", _last(one))
        for one in ast.walk(node)
    )
