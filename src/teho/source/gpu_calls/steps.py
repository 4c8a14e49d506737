"""Finds loops of PyTorch whose iterations depend on each other, such as hand-written RNNs.

Each iteration starts some small kernels, and the next iteration waits for them. The GPU then has
only a few threads at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.source.changes import named_values
from teho.source.constants import number_of
from teho.source.gpu_calls.call import GpuCall, InFile, called_name
from teho.source.parsed import Loop, root_name
from teho.source.program import Place
from teho.source.slow_calls.loop_parts import imported_name, names_in

__all__ = ["find_dependent_steps"]

_ITEMS = frozenset(("unbind", "split", "chunk"))
_NOT_INSIDE = frozenset(
    (
        *("backward", "step", "zero_grad", "item", "cpu", "numpy", "tolist", "save", "write"),
        *("read", "synchronize", "train", "eval", "fit", "load_state_dict", "no_sync"),
    )
)
"""Methods of loops that train, evaluate or write: their iterations are large."""
_COLLECTS = frozenset(("cat", "concat", "concatenate", "stack", "append", "max", "min", "maximum"))
_LEAST_STEPS = 8
_LEAST_OPERATIONS = 3
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare)


def find_dependent_steps(source: InFile) -> Iterator[GpuCall]:
    """Yield the loops over steps whose tensors depend on the step before.

    Args:
        source: the file.
    """
    for place in source.places():
        for loop in place.function.loops:
            if not isinstance(loop.node, ast.For) or not _is_over_steps(loop, place, source):
                continue
            nodes = source.purity.program.all_nodes(loop.node, loop.node.body)
            states = _states(loop, nodes, place)
            if states and _is_of_tensors(nodes, place, source) and not _is_over_layers(loop, nodes):
                torch = imported_name("torch", place.function, "torch")
                words = {"state": states[0], "loop": str(loop.line), "last": str(loop.last)}
                words["lib"] = torch
                yield GpuCall("dependent_steps", loop.node.iter, words, loop.last)


def _is_over_steps(loop: Loop, place: Place, source: InFile) -> bool:
    """Return whether a loop goes over numbers, or over the parts of a tensor."""
    match loop.iterable:
        case ast.Call(func=ast.Name(id="range"), args=args):
            last = number_of(args[min(1, len(args) - 1)], place, source.purity) if args else None
            return last is None or last.value >= _LEAST_STEPS
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _ITEMS
    return False


def _states(loop: Loop, nodes: Sequence[ast.AST], place: Place) -> list[str]:
    """Return the names whose new value is computed from their value in the iteration before."""
    function = place.function
    before = {
        name
        for name, given in function.assigned.items()
        if any(one.line < loop.line for one in given)
    } | set(function.params)
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.AugAssign):
            continue  # a sum over the iterations
        for target, value in named_values(node):
            name = root_name(target) if isinstance(target, ast.Name) else ""
            if name in before and _depends(value, name):
                found[name] = None
    return list(found)


def _depends(value: ast.expr, name: str) -> bool:
    """Return whether a new value needs the old one for more than to add to it."""
    match value:
        case ast.BinOp(left=left, op=op, right=right):
            parts = (left, right)
            if any(_depends(one, name) for one in parts):
                return True
            if any(isinstance(one, ast.Constant) for one in parts):
                return False  # a counter, or a rate that falls
            if isinstance(op, (ast.Add, ast.Sub)):
                return any(isinstance(one, ast.BinOp) and name in names_in(one) for one in parts)
            return name in names_in(value)
        case ast.Call(func=ast.Attribute(attr=method) | ast.Name(id=method)):
            return method not in _COLLECTS and name in names_in(value)
    return False


def _is_of_tensors(nodes: Sequence[ast.AST], place: Place, source: InFile) -> bool:
    """Return whether an iteration has several operations of PyTorch, and no large work."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    own = [source.purity.program.called(one, place) for one in calls]
    inner = [node for one in own if isinstance(one, Place) for node in one.function.nodes]
    called = [node for node in inner if isinstance(node, ast.Call)]
    methods = {one.func.attr for one in (*calls, *called) if isinstance(one.func, ast.Attribute)}
    if not methods.isdisjoint(_NOT_INSIDE):
        return False
    names = [called_name(one, place, source.purity) for one in calls]
    is_torch = any(name.startswith("torch.") for name in names)
    is_torch |= any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult) for one in nodes)
    is_torch |= any(
        _is_layer(one) for one, function in zip(calls, own, strict=True) if function is None
    )
    is_other = any(name.startswith(("numpy.", "jax.", "cupy.", "scipy.")) for name in names)
    operations = len(calls) + sum(isinstance(one, _OPERATORS) for one in nodes)
    return is_torch and not is_other and operations >= _LEAST_OPERATIONS


def _is_layer(call: ast.Call) -> bool:
    """Return whether a call may be the one of a layer: `self.gate(x)`."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
    return False


def _is_over_layers(loop: Loop, nodes: Sequence[ast.AST]) -> bool:
    """Return whether each iteration calls another layer: `self.layers[i](x)`."""
    if not isinstance(loop.node, ast.For) or not isinstance(loop.node.target, ast.Name):
        return False
    number = loop.node.target.id
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and number in names_in(node.func.slice)
        for node in nodes
    )
