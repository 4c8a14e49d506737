"""Finds Python loops over the samples of a batch that is on a GPU.

Each operation on one sample starts a tiny kernel, which takes Python 5 to 20 µs, and the GPU much
less. One operation on the whole batch starts one kernel. The source shows that the samples do not
depend on each other, and that the program joins the results to a batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.devices import Devices, called_name
from teho.source.parsed import COMPREHENSIONS, Function, Loop, root_name
from teho.source.program import Place, Program
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import has_jit
from teho.source.slow_calls.sample_code import code_for_batch
from teho.source.slow_calls.sample_ways import ways_for_batch
from teho.source.stack import Level

__all__ = ["find_sample_loop"]

_LOADER = re.compile(r"/torch/utils/data/|/jax/_src/(pjit|interpreters/partial_eval)\.py$")
_LEAST_SAMPLES = 8
_JOINS = re.compile(
    r"(torch|cupy|jax\.numpy)\.(stack|cat|concat|concatenate|vstack|hstack|asarray|array)$"
)
_OF_DEVICES = re.compile(r"(torch|torchvision|kornia|cupy|cupyx|jax|einops)\.")
_OF_HOST = re.compile(
    r"(math|random|numpy|builtins)\.|(len|int|float|bool|range|min|max|abs|zip|enumerate|round|print"
    r"|tuple|list|sum|slice)$"
)
_OF_GENERATORS = frozenset(
    (
        "uniform",
        "normal",
        "integers",
        "random",
        "choice",
        "randint",
        "rand",
        "randn",
        "random_sample",
    )
)
"""Methods of generators of random numbers."""
_VARYING = frozenset(
    (
        *("nonzero", "unique", "unique_consecutive", "masked_select", "nms", "batched_nms"),
        *("backward", "step", "zero_grad", "numpy", "save", "imwrite", "multinomial"),
    )
)
"""Functions and methods whose results differ in size, or that need each sample by itself."""
_ENDS = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Raise, ast.While)
_CHUNKS = frozenset(("split", "chunk", "tensor_split"))
_DEEPEST = 2


class _Samples(NamedTuple):
    """A loop over samples."""

    loop: Loop
    batch: str
    """The batch that the loop goes through: `x`."""
    item: str
    """What the body has of it: `crop`, or `x[i]`."""
    iterables: Mapping[str, str]
    """The other names of the loop, and what they go through."""


def find_sample_loop(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the loop on a stack that computes with one sample of a batch at a time.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if any(_LOADER.search(frame.file) for frame in frames):
        return None
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        if has_jit(level.function):
            return None
        for loop in reversed(level.loops()):
            samples = _samples(loop, levels, number, purity.program)
            if samples is None:
                continue
            result = _result(samples, level, purity.program)
            body = _Body(samples, level, purity.program)
            if result is None or not body.is_independent or not body.fits:
                return None
            return _found(samples, result, level)
    return None


def _samples(loop: Loop, levels: Sequence[Level], number: int, program: Program) -> _Samples | None:
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
                return _Samples(loop, batch, f"{batch}[{name}]", others)
        elif _is_array(value, level.function) and devices.of(value, number) == "device":
            del others[name]
            return _Samples(loop, ast.unparse(value), name, others)
    return None


def _is_of_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and root_name(node.func) == "range" and len(node.args) == 1


def _is_array(node: ast.expr, function: Function) -> bool:
    """Return whether the items of an expression are samples, and not lists, layers or parts."""
    match node:
        case ast.Name(id=name):
            values = [one.value for one in function.assigned.get(name, []) if one.value is not None]
            lists = (ast.List, ast.Tuple, ast.Dict, *COMPREHENSIONS)
            return not any(
                isinstance(one, lists) or (isinstance(one, ast.Call) and _is_chunks(one))
                for one in values
            )
        case ast.Call():
            return not _is_chunks(node) and root_name(node.func) not in (
                "zip",
                "enumerate",
                "range",
            )
        case ast.Subscript() | ast.Attribute():
            return True
    return False


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


def _result(samples: _Samples, level: Level, program: Program) -> ast.Call | None:
    """Return the call that joins the results of a loop to a batch; None: it is not clear."""
    function, loop = level.function, samples.loop
    joins = [
        node
        for node in function.nodes
        if isinstance(node, ast.Call)
        and node.args
        and _JOINS.match(called_name(node, level.place, program))
    ]
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


class _Body:
    """The body of a loop over samples."""

    def __init__(self, samples: _Samples, level: Level, program: Program) -> None:
        self._samples, self._program, self._level = samples, program, level
        node = samples.loop.node
        self._statements: list[ast.stmt] = list(getattr(node, "body", ()))
        parts: Sequence[ast.AST] = self._statements
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            parts = [node.elt]
            if len(node.generators) > 1 or node.generators[0].ifs:
                parts = []
        self._nodes = [inner for one in parts for inner in ast.walk(one)]

    @property
    def is_independent(self) -> bool:
        """Whether no iteration needs a value of the one before."""
        loop, function = self._samples.loop, self._level.function
        if any(isinstance(one, (ast.AugAssign, *_ENDS)) for one in self._nodes):
            return False
        targets = {
            name
            for name, given in function.assigned.items()
            if any(one.loop == loop for one in given)
        }
        known = set(targets)
        return _reads_only(self._statements, known, _stored(self._nodes) - targets)

    @property
    def fits(self) -> bool:
        """Whether the body only computes with arrays on a device, and with numbers."""
        calls = [one for one in self._nodes if isinstance(one, ast.Call)]
        of_device = [self._kind(one, self._level.place, 0) for one in calls]
        return None not in of_device and True in of_device

    def _kind(self, call: ast.Call, at: Place, depth: int) -> bool | None:
        """Return whether a call computes on a device; None: a whole batch may not be possible."""
        name = called_name(call, at, self._program)
        last = name.rpartition(".")[2]
        if last in _VARYING or (last == "where" and len(call.args) == 1):
            return None
        if isinstance(called := self._program.called(call, at), Place):
            return self._of_function(called, depth)
        if name.startswith("."):
            owner = root_name(call.func)
            if last == "append":
                return False
            if last in _OF_GENERATORS:
                return False
            is_array = owner != "self" and (not owner or self._is_of_sample(owner, at))
            return True if is_array else None
        if _OF_DEVICES.match(name):
            return True
        return False if _OF_HOST.match(name) else None

    def _is_of_sample(self, name: str, at: Place) -> bool:
        """Return whether a name is a sample, or gets its value in the loop."""
        if at.function is not self._level.function:
            return name in at.function.params or name in at.function.assigned
        loop = self._samples.loop
        return name == root_name(ast.parse(self._samples.item, mode="eval").body) or any(
            loop.line <= one.line <= loop.last for one in at.function.assigned.get(name, ())
        )

    def _of_function(self, called: Place, depth: int) -> bool | None:
        """Return whether a function of the program computes on a device, like `_kind`."""
        if depth >= _DEEPEST or called.function.owner is not None:
            return None
        if any(isinstance(one, (ast.Yield, ast.Await, ast.While)) for one in called.function.nodes):
            return None
        calls = [one for one in called.function.nodes if isinstance(one, ast.Call)]
        kinds = [self._kind(one, called, depth + 1) for one in calls]
        return None if None in kinds else True in kinds


def _stored(nodes: Sequence[ast.AST]) -> set[str]:
    return {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _reads_only(statements: Sequence[ast.stmt], known: set[str], stored: set[str]) -> bool:
    """Return whether code reads names that it gives values only after it has done so."""
    for one in statements:
        inner = [*getattr(one, "body", ()), *getattr(one, "orelse", ())]
        reads = [getattr(one, "test", None), getattr(one, "iter", None)] if inner else [one]
        for part in filter(None, reads):
            for node in ast.walk(part):
                if (
                    isinstance(node, ast.Name)
                    and isinstance(node.ctx, ast.Load)
                    and node.id in stored - known
                ):
                    return False
        if isinstance(one, ast.For):
            known |= _stored(list(ast.walk(one.target)))
        if inner and not _reads_only(inner, known, stored):
            return False
        known |= _stored([one, *ast.walk(one)])
    return True


def _found(samples: _Samples, result: ast.Call, level: Level) -> CostlyOption:
    frame, loop = level.frame, samples.loop
    short = frame.file.rpartition("/")[2]
    code = code_for_batch(loop, samples.batch, samples.item, samples.iterables, result, level)
    last = max(loop.last, result.end_lineno or result.lineno)
    advice = (
        f"In {short}, write these lines instead of lines {loop.line} to {last}: "
        + "; ".join(f"`{one}`" for one in code)
        + "."
        if code
        else f"Compute the whole batch `{samples.batch}` with one call of each operation, instead "
        f"of the loop at {short}:{loop.line}. " + ways_for_batch(loop, samples.batch)
    )
    node = loop.node
    text = level.file.text_of(node) if isinstance(node, ast.expr) else ""
    text = text or level.file.line_text(loop.line).rstrip(":")
    return CostlyOption(
        name="loop_over_samples",
        at=Frame(frame.file, frame.function, loop.line, text),
        lines=(frame,),
        words={"batch": samples.batch, "advice": advice, "last": str(loop.last)},
    )
