"""Finds Python loops over the samples of a batch that is on a GPU.

Each operation on one sample starts a tiny kernel, which takes Python 5 to 20 µs, and the GPU much
less. One operation on the whole batch starts one kernel. The source shows that the samples do not
depend on each other, and that the program joins the results to a batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.devices import Devices, Where, called_name
from teho.source.parsed import COMPREHENSIONS, Function, Loop, root_name
from teho.source.program import Program
from teho.source.purity import Purity
from teho.source.slow_calls.sample_bodies import Body, Samples
from teho.source.slow_calls.sample_code import code_for_batch
from teho.source.slow_calls.sample_ways import advice_for_batch
from teho.source.stack import Level

__all__ = ["find_sample_loop"]

_LOADER = lazy_pattern(
    r"/torch/utils/data/|/torch/_dynamo/|/jax/_src/(pjit|interpreters/partial_eval)\.py$"
)
"""Files of libraries that call the loop in a data loader, or to compile it."""
_COMPILES = lazy_pattern(r"\b(jit|vmap|pmap|filter_jit|fuse|script|rawkernel)\b|torch\.compile")
_LEAST_SAMPLES = 8
_JOINS = lazy_pattern(
    r"(torch|cupy|jax\.numpy)\.(stack|cat|concat|concatenate|vstack|hstack|asarray|array)$"
)
_STACKS = lazy_pattern(r"(stack|array)$")
_ARRAYS_OF_DEVICE = lazy_pattern(r"(cupy|jax\.numpy|jax\.image|jax\.nn)\.")
_LISTS = frozenset(("zip", "enumerate", "range", "list", "tuple", "sorted", "map", "filter"))
_DEEPEST = 4
_CHUNKS = frozenset(("split", "chunk", "tensor_split"))


def find_sample_loop(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the loop on a stack that computes with one sample of a batch at a time.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if any(map(_is_compiled, levels)):
        return None
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        outside = frames[frames.index(level.frame) + 1 :]
        if any(_LOADER.search(frame.file) for frame in outside):
            return None
        for loop in reversed(level.loops()):
            samples = _samples(loop, levels, number, purity.program)
            if samples is None:
                continue
            body = Body(samples, level, purity.program)
            result = _result(samples, level, purity.program)
            is_joined = result is not None or body.is_filled or body.is_summed
            if not (is_joined and body.is_independent and body.fits):
                return None
            return _found(samples, result, level, has_transforms=body.has_transforms)
    return None


def _is_compiled(level: Level) -> bool:
    """Return whether a decorator compiles the function of a level: loops then run only once."""
    decorators = getattr(level.function.node, "decorator_list", ())
    return any(_COMPILES.search(ast.unparse(one)) for one in decorators)


def _samples(loop: Loop, levels: Sequence[Level], number: int, program: Program) -> Samples | None:
    """Return a loop if it goes through the samples of a batch on a device."""
    level = levels[number]
    if loop.iterable is None or isinstance(loop.node, ast.AsyncFor):
        return None
    if not may_iterate(loop, level.function, _LEAST_SAMPLES):
        return None
    devices = Devices(levels, program)
    given = {
        name: one.value
        for name, every in level.function.assigned.items()
        for one in every
        if one.loop == loop and one.value is not None
    }
    others = {name: ast.unparse(value) for name, value in given.items()}
    for name, value in given.items():
        if _is_of_range(value):
            batch = _indexed(name, loop, devices, number)
            if batch is not None:
                return Samples(loop, batch, f"{batch}[{name}]", others)
        elif (
            name in _whole_items(loop)
            and _is_array(value, level.function)
            and _is_there(name, value, loop, level, devices.of(value, number), program)
        ):
            del others[name]
            return Samples(loop, ast.unparse(value), name, others)
    return None


def _is_there(
    name: str, value: ast.expr, loop: Loop, level: Level, where: Where, program: Program
) -> bool:
    """Return whether the items of an array are on a device: functions of JAX and CuPy need this."""
    if where is not None:
        return where == "device"
    return isinstance(value, (ast.Name, ast.Attribute)) and any(
        isinstance(node, ast.Call)
        and _ARRAYS_OF_DEVICE.match(called_name(node, level.place, program))
        and any(isinstance(one, ast.Name) and one.id == name for one in node.args)
        for node in ast.walk(loop.node)
    )


def _whole_items(loop: Loop) -> set[str]:
    """Return the names of a loop that get whole items: of `i, (a, b)`, only `i`.

    A name that the body joins or unpacks is a list, and not a sample.
    """
    node = loop.node
    target = node.target if isinstance(node, ast.For) else None
    if isinstance(node, COMPREHENSIONS):
        target = node.generators[0].target
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    for one in ast.walk(node):
        match one:
            case ast.Call(func=ast.Attribute(attr="stack" | "cat"), args=[ast.Name(id=name), *_]):
                names.discard(name)
            case ast.Assign(targets=[ast.Tuple()], value=ast.Name(id=name)):
                names.discard(name)
    return names


def _is_of_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and root_name(node.func) == "range" and len(node.args) == 1


def _is_array(node: ast.expr, function: Function, depth: int = 0) -> bool:
    """Return whether the items of an expression are samples, and not lists, layers or parts."""
    match node:
        case ast.Name(id=name):
            values = [one.value for one in function.assigned.get(name, []) if one.value is not None]
            if name.endswith(("list", "lists")):
                return False
            return depth > _DEEPEST or all(_is_array(one, function, depth + 1) for one in values)
        case ast.Call():
            return not _is_chunks(node) and root_name(node.func) not in _LISTS
        case ast.Subscript(value=value) if isinstance(node.slice, ast.Slice):
            return _is_array(value, function, depth + 1)
        case ast.List() | ast.Tuple() | ast.Dict() | ast.ListComp() | ast.DictComp():
            return False
    return not isinstance(node, COMPREHENSIONS)


def _is_chunks(call: ast.Call) -> bool:
    """Return whether a call divides an array into a few larger parts."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _CHUNKS:
        return False
    return [ast.unparse(one) for one in call.args[-1:]] != ["1"] or call.func.attr != "split"


def _indexed(index: str, loop: Loop, devices: Devices, number: int) -> str | None:
    """Return the array on a device of which the body reads the samples: `x` of `x[i]`."""
    for node in ast.walk(loop.node):
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        is_sample = ast.unparse(first) in (index, f"{index}:{index} + 1")
        is_named = isinstance(node.value, (ast.Name, ast.Attribute))
        if is_sample and is_named and devices.of(node.value, number) == "device":
            return ast.unparse(node.value)
    return None


def _has_one_row(samples: Samples) -> bool:
    """Return whether the body gives each sample a first axis of length 1: `crop[None]`."""
    text = ast.unparse(samples.loop.node)
    item = re.escape(samples.item)
    return re.search(rf"\b{item}(\[None|\.unsqueeze\(0\))|\[(\w+):\2 \+ 1", text) is not None


def _result(samples: Samples, level: Level, program: Program) -> ast.Call | None:
    """Return the call that joins the results of a loop to a batch; None: it is not clear."""
    function, loop = level.function, samples.loop
    joins = [
        node
        for node in function.nodes
        if isinstance(node, ast.Call)
        and node.args
        and _JOINS.match(called_name(node, level.place, program))
    ]
    if not _has_one_row(samples):  # samples of different sizes can be joined, but not stacked
        joins = [one for one in joins if _STACKS.search(ast.unparse(one.func))]
    if not loop.is_statement:
        return next((one for one in joins if one.args[0] is loop.node), None)
    lists = {
        root_name(node.func.value)
        for node in ast.walk(loop.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and isinstance(node.func.value, ast.Name)
    }
    if len(lists) != 1:
        return None
    return next(
        (
            one
            for one in joins
            if isinstance(one.args[0], ast.Name)
            and one.args[0].id in lists
            and one.lineno > loop.last
        ),
        None,
    )


def _found(
    samples: Samples, result: ast.Call | None, level: Level, *, has_transforms: bool
) -> CostlyOption:
    frame, loop = level.frame, samples.loop
    short = frame.file.rpartition("/")[2]
    code: list[str] = []
    last = loop.last
    if result is not None:
        code = code_for_batch(loop, samples.batch, samples.item, samples.iterables, result, level)
        last = max(loop.last, result.end_lineno or result.lineno)
    advice = advice_for_batch(loop, samples.batch, last, code, short, has_transforms=has_transforms)
    node = loop.node
    text = level.file.text_of(node) if isinstance(node, ast.expr) else ""
    text = text or level.file.line_text(loop.line).rstrip(":")
    return CostlyOption(
        name="loop_over_samples",
        at=Frame(frame.file, frame.function, loop.line, text),
        lines=(frame,),
        words={"batch": samples.batch, "advice": advice, "last": str(loop.last)},
    )
