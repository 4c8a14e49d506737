"""The bodies of loops over samples: whether one call for the whole batch could do the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.devices import called_name
from teho.source.options.uses import assigned_value
from teho.source.parsed import Loop, root_name
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["Body", "Samples"]

_TRANSFORMS = lazy_pattern(r"(torchvision\.transforms|kornia)\.")
_OF_DEVICES = lazy_pattern(r"(torch|torchvision|kornia|cupy|cupyx|jax|einops)\.")
_OF_HOST = lazy_pattern(
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
_DEEPEST = 2


class Samples(NamedTuple):
    """A loop over samples."""

    loop: Loop
    batch: str
    """The batch that the loop goes through: `x`."""
    item: str
    """What the body has of it: `crop`, or `x[i]`."""
    iterables: Mapping[str, str]
    """The other names of the loop, and what they go through."""


class Body:
    """The body of a loop over samples."""

    def __init__(self, samples: Samples, level: Level, program: Program) -> None:
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
        if any(isinstance(one, _ENDS) for one in self._nodes):
            return False
        changed = [one for one in self._nodes if isinstance(one, ast.AugAssign)]
        if changed and not self.is_summed:
            return False
        if not all(map(self._is_whole, self._nodes)):
            return False
        targets = {
            name
            for name, given in function.assigned.items()
            if any(one.loop == loop for one in given)
        }
        known = set(targets)
        if self.is_summed:
            known |= {name for one in self._statements if (name := _total(one))}
        return _reads_only(self._statements, known, _stored(self._nodes) - targets)

    def _is_whole(self, node: ast.AST) -> bool:
        """Return whether code takes the same part of each sample: not `x[i, : lengths[i]]`."""
        if not isinstance(node, ast.Subscript):
            return True
        loop = self._samples.loop
        given = self._level.function.assigned
        names = {name for name, every in given.items() if any(one.loop == loop for one in every)}
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Slice) and ast.unparse(part).endswith(" + 1"):
                continue
            inner = [one for one in ast.walk(part) if not isinstance(one, ast.expr_context)]
            kinds = (ast.Constant, ast.Slice, ast.UnaryOp, ast.USub)
            is_index = isinstance(part, ast.Name) and part.id in names
            if not is_index and not all(isinstance(one, kinds) for one in inner):
                return False
        return True

    @property
    def is_filled(self) -> bool:
        """Whether the results fill an array that the program made before: `out[i] = f(x[i])`."""
        made = re.compile(r"(torch|cupy)\.(zeros|empty|ones|full)(_like)?$")
        for one in self._nodes:
            match one:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(), ctx=ast.Store()):
                    values = [each.value for each in self._level.function.assigned.get(name, ())]
                    if len(values) == 1 and isinstance(values[0], ast.Call):
                        called = called_name(values[0], self._level.place, self._program)
                        return made.match(called) is not None
        return False

    @property
    def is_summed(self) -> bool:
        """Whether the loop only adds its results: `loss += f(x[i])`."""
        totals = [name for one in self._statements if (name := _total(one))]
        changed = [one for one in self._nodes if isinstance(one, ast.AugAssign)]
        if len(totals) != 1 or len(changed) > 1 or any(not _total(one) for one in changed):
            return False
        reads = [
            one
            for one in self._nodes
            if isinstance(one, ast.Name) and one.id == totals[0] and isinstance(one.ctx, ast.Load)
        ]
        return len(reads) <= 1 - len(changed)

    @property
    def has_transforms(self) -> bool:
        """Whether the loop calls transforms of images, which draw their own random numbers."""
        return any(
            isinstance(one, ast.Call)
            and _TRANSFORMS.match(self._made_by(one.func, self._level.place))
            for one in self._nodes
        )

    def _made_by(self, target: ast.expr, at: Place) -> str:
        """Return the function of a library that made an object which is called; empty: unknown."""
        if not isinstance(target, ast.Name):
            return ""
        found = assigned_value(target.id, at.function)
        if found is None or not isinstance(found[0], ast.Call):
            return ""
        return called_name(found[0], Place(at.path, found[1]), self._program)

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
        if _TRANSFORMS.match(self._made_by(call.func, at)):
            return True
        if name == "len" and isinstance(call.args[0], ast.Subscript):
            return None  # each sample has another length
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


def _total(statement: ast.AST) -> str:
    """Return the name to which a statement adds: `a` of `a += f(x)` and `a = a + f(x)`."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
            return name
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.BinOp(op=ast.Add(), left=ast.Name(id=left)),
        ) if name == left:
            return name
    return ""


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
