"""Follows arrays to find out whether they are on a device, such as a GPU, or in host memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Union

from teho.patterns import lazy_pattern
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place, Program
from teho.source.stack import Level, argument

__all__ = ["Devices", "Where", "called_name"]

Where = Union[Literal["device", "host"], None]
"""Where an array is; None: not known."""

_TO_HOST = frozenset(("cpu", "numpy", "tolist", "item"))
_HOST = lazy_pattern(
    r"(numpy|scipy|sklearn|pandas|cv2|PIL|skimage|imageio|math|random)\.|cupy\.asnumpy$"
    r"|jax\.device_get$|torch\.(from_numpy|load)$"
)
_DEVICE = lazy_pattern(r"(cupy|cupyx|jax\.numpy|jax\.random|jax\.lax|jax\.nn)\.|jax\.device_put$")
_MAKERS = lazy_pattern(
    r"torch\.(tensor|as_tensor|zeros|ones|full|empty|rand|randn|randint|randperm|arange|linspace"
    r"|logspace|eye|normal)$"
)
"""Functions that make a tensor in host memory if they get no `device`."""
_ON_DEVICE = lazy_pattern(r"dev|cuda|gpu|rank|accelerator", re.IGNORECASE)
_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step", "forward"))
"""Methods of models that get their arrays on the device of the model."""
_PARTS = lazy_pattern(r"\.(chunk|split|tensor_split|hsplit|vsplit|array_split)$")
"""Functions and methods that return several arrays."""
_OF_MODELS = frozenset(
    (
        *("parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "modules"),
        *("children", "named_modules", "named_children", "items", "values", "keys"),
    )
)
_TYPE = lazy_pattern(r"(torch|jnp|np|cp)\.\w+$|^'?float|^'?int")
_DEEPEST = 30


def called_name(call: ast.Call, place: Place, program: Program) -> str:
    """Return the whole name of a library's function, or `.name` of a method; empty: neither."""
    called = program.called(call, place)
    if isinstance(called, str):
        return called
    if called is None and isinstance(call.func, ast.Attribute):
        return f".{call.func.attr}"
    return ""


class Devices:
    """Where the arrays of a stack are.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """

    def __init__(self, levels: Sequence[Level], program: Program) -> None:
        self._levels, self._program = levels, program

    def of(self, node: ast.expr, number: int) -> Where:
        """Return where the array of an expression is.

        Args:
            node: the expression.
            number: the number of the level with this expression.
        """
        return self._of(node, self._levels[number].place, number, 0)

    def _of(self, node: ast.expr, at: Place, number: int | None, depth: int) -> Where:
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Call():
                return self._of_call(node, at, number, depth + 1)
            case ast.Name():
                return self._of_name(node, at, number, depth + 1)
            case ast.Attribute(value=ast.Name(id="self")):
                return self._of_attribute(node.attr, at, depth + 1)
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                return self._of(value, at, number, depth + 1)
            case ast.BinOp(left=left, right=right):
                return self._any((left, right), at, number, depth)
            case ast.Compare(left=left, comparators=others):
                return self._any((left, *others), at, number, depth)
            case ast.UnaryOp(operand=operand):
                return self._of(operand, at, number, depth + 1)
            case ast.IfExp(body=body, orelse=orelse):
                return self._any((body, orelse), at, number, depth)
        return None

    def _any(self, nodes: Iterable[ast.expr], at: Place, number: int | None, depth: int) -> Where:
        """Return where the result of some arrays is: on the device if one of them is there."""
        found = {self._of(one, at, number, depth + 1) for one in nodes}
        return "device" if "device" in found else "host" if "host" in found else None

    def _of_call(self, call: ast.Call, at: Place, number: int | None, depth: int) -> Where:
        words = {word.arg: word.value for word in call.keywords}
        if "device" in words:
            return "host" if _is_host(words["device"]) else "device"
        called = self._program.called(call, at)
        if isinstance(called, Place):
            return self._of_function(called, depth) or self._any(call.args, at, number, depth)
        if isinstance(called, str) and _PARTS.search(called):
            return None
        if isinstance(called, str) and "." in called:
            if _HOST.match(called):
                return "host"
            if _DEVICE.match(called):
                return "device"
            if _MAKERS.match(called):
                return "host"
            return self._any(self._given(call, at), at, number, depth)
        if not isinstance(call.func, ast.Attribute):
            is_model = isinstance(call.func, ast.Name) and called is None
            return self._any(call.args, at, number, depth) if is_model else None
        method, value = call.func.attr, call.func.value
        if method in _OF_MODELS or _PARTS.search(f".{method}"):
            return None
        if method in _TO_HOST or (method == "get" and not call.args):
            return "host"
        if method == "cuda":
            return "device"
        if method == "to" and (target := [*call.args, *words.values()]):
            text = ast.unparse(target[0])
            if _is_host(target[0]):
                return "host"
            if not _TYPE.search(text) and _ON_DEVICE.search(text):
                return "device"
        of_object = self._of(value, at, number, depth)
        return of_object or self._any(call.args, at, number, depth)

    def _given(self, call: ast.Call, at: Place) -> Iterator[ast.expr]:
        """Yield the arrays that a function gets, also those in a list."""
        for one in call.args:
            if isinstance(one, (ast.List, ast.Tuple)):
                yield from one.elts
            elif isinstance(one, (ast.ListComp, ast.GeneratorExp)):
                yield one.elt
            elif isinstance(one, ast.Name) and (items := items_of(one.id, at.function)):
                yield from items
            else:
                yield one

    def _of_name(self, node: ast.Name, at: Place, number: int | None, depth: int) -> Where:
        if node.id.endswith(("list", "lists")):
            return None  # several arrays
        function: Function | None = at.function
        before = [one for one in at.function.assigned.get(node.id, ()) if one.line < node.lineno]
        if not before and node.id in at.function.params:
            return self._of_parameter(node.id, at, number, depth)
        while function is not None and not function.knows(node.id):
            function, number = function.parent, None
        if function is None:
            return None
        if node.id in function.params and function is not at.function:
            return None  # of a function around it
        given = before or function.assigned.get(node.id, [])
        one = max(given, key=lambda each: each.line) if before or len(given) == 1 else None
        if one is None or one.value is None:
            return None
        return self._of(one.value, Place(at.path, function), number, depth)

    def _of_parameter(self, name: str, at: Place, number: int | None, depth: int) -> Where:
        if number is None:
            return None
        given = argument(self._levels, number, name)
        if given is not None:
            return self._of(given, self._levels[number - 1].place, number - 1, depth)
        is_step = at.function.name in _STEPS and at.function.owner is not None
        return "device" if is_step and name != "self" else None

    def _of_attribute(self, name: str, at: Place, depth: int) -> Where:
        """Return where an attribute of the object is, by the methods of its class."""
        owner = at.function.owner
        found: set[Where] = set()
        for method in at.function.module.every() if owner is not None else ():
            if method.owner is not owner:
                continue
            for node in method.nodes:
                match node:
                    case ast.Assign(targets=[target], value=value):
                        if dotted_name(target) == f"self.{name}":
                            found.add(self._of(value, Place(at.path, method), None, depth))
        return "device" if "device" in found else "host" if found == {"host"} else None

    def _of_function(self, called: Place, depth: int) -> Where:
        """Return where the result of a function of the program is."""
        returned = [
            node.value
            for node in called.function.nodes
            if isinstance(node, ast.Return) and node.value is not None
        ]
        parts = [
            part
            for one in returned
            for part in (one.elts if isinstance(one, ast.Tuple) else (one,))
        ]
        return self._any(parts, called, None, depth)


def items_of(name: str, function: Function) -> list[ast.expr]:
    """Return what a function appends to a list, if the list begins empty."""
    begins = function.assigned.get(name, [])
    if not any(isinstance(one.value, ast.List) and not one.value.elts for one in begins):
        return []
    return [
        node.args[0]
        for node in function.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and root_name(node.func.value) == name
        and len(node.args) == 1
    ]


def _is_host(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text in ("'cpu'", "torch.device('cpu')")
