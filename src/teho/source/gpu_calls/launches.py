"""Finds kernels of Numba that get NumPy arrays in a loop.

Numba then copies each array to the GPU before the kernel, and back after the kernel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from teho.patterns import lazy_pattern
from teho.source.gpu_calls.call import GpuCall, InFile
from teho.source.options.uses import name_of
from teho.source.parsed import Function, Loop, dotted_name
from teho.source.program import Place
from teho.source.slow_calls.loop_parts import imported_name, loads_of

__all__ = ["find_host_arrays"]

_MAKES = lazy_pattern(
    r"numpy\.(zeros|ones|empty|full)(_like)?|numpy\.(array|asarray|ascontiguousarray|linspace"
    r"|arange|load|fromfile|loadtxt|genfromtxt|random\.\w+|copy|tile|repeat|concatenate|stack)"
)
"""Functions that make an array in the memory of the host."""
_SAME = frozenset(("astype", "copy", "reshape", "ravel", "flatten"))


def find_host_arrays(source: InFile) -> Iterator[GpuCall]:
    """Yield the launches in loops whose arrays are in the memory of the host.

    Args:
        source: the file.
    """
    for place in source.places():
        for node in place.function.nodes:
            match node:
                case ast.Call(func=ast.Subscript(value=ast.Name(id=kernel))) if _is_kernel(
                    kernel, place, source
                ):
                    loops = [one for one in place.function.loops_at(node.lineno) if _is_loop(one)]
                    if loops:
                        yield from _launch(node, loops[-1], place, source)


def _is_loop(loop: Loop) -> bool:
    return isinstance(loop.node, (ast.For, ast.While))


def _is_kernel(name: str, place: Place, source: InFile) -> bool:
    """Return whether a name is a function with the decorator `cuda.jit` of Numba."""
    found = source.purity.program.named(name, place)
    if not isinstance(found, Place):
        return False
    for decorator in getattr(found.function.node, "decorator_list", ()):
        whole = decorator.func if isinstance(decorator, ast.Call) else decorator
        if name_of(whole, found, source.purity.program) == "numba.cuda.jit":
            return True
    return False


def _launch(call: ast.Call, loop: Loop, place: Place, source: InFile) -> Iterator[GpuCall]:
    function = place.function
    names = [one.id for one in call.args if isinstance(one, ast.Name)]
    arrays = [
        name
        for name in dict.fromkeys(names)
        if _is_host_array(name, place, source) and _is_only_given(name, loop, function, source)
    ]
    if not arrays:
        return
    cuda = imported_name("numba.cuda", function, "cuda")
    new = ast.unparse(call)
    for name in arrays:
        new = re.sub(rf"\b{name}\b", f"d_{name}", new)
    read = [one for one in arrays if _is_read_after(one, loop, function)]
    words = {
        "arrays": " and ".join(f"`{one}`" for one in arrays),
        "before": "; ".join(f"d_{one} = {cuda}.to_device({one})" for one in arrays),
        "loop": str(loop.line),
        "new": new,
        "last": str(loop.last),
        "after": "; ".join(f"d_{one}.copy_to_host({one})" for one in read or arrays),
    }
    yield GpuCall("host_arrays_launched", call, words)


def _is_host_array(name: str, place: Place, source: InFile) -> bool:
    """Return whether a name is always a NumPy array."""
    given = place.function.assigned.get(name, [])
    return bool(given) and all(
        one.value is not None and one.loop is None and _makes_array(one.value, place, source)
        for one in given
    )


def _makes_array(value: ast.expr, place: Place, source: InFile) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = name_of(value.func, place, source.purity.program)
    if _MAKES.fullmatch(name):
        return True
    match value.func:
        case ast.Attribute(value=ast.Call() as inner, attr=method) if method in _SAME:
            return _makes_array(inner, place, source)
    return False


def _is_only_given(name: str, loop: Loop, function: Function, source: InFile) -> bool:
    """Return whether a loop uses an array only as an argument of kernels."""
    if not isinstance(loop.node, (ast.For, ast.While)):
        return False
    nodes = source.purity.program.all_nodes(loop.node, loop.node.body)
    given = {
        id(one)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
        for one in node.args
    }
    is_set = any(
        loop.first <= one.line <= loop.last for one in function.assigned.get(name, ())
    ) or any(
        isinstance(node, (ast.Subscript, ast.Attribute)) and dotted_name(node.value) == name
        for node in nodes
    )
    return not is_set and all(id(one) in given for one in loads_of(name, nodes))


def _is_read_after(name: str, loop: Loop, function: Function) -> bool:
    return any(one.lineno > loop.last for one in loads_of(name, function.nodes))
