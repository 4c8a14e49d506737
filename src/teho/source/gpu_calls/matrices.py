"""Finds QR decompositions of many small matrices, which a GPU computes one after the other.

cuSOLVER has no batched function that makes Q: PyTorch, CuPy and JAX call it once for each matrix.
Two passes of Cholesky QR consist of batched functions. On an RTX 3090, the QR decompositions of
8192 small matrices needed 210 ms, and the singular values of the same matrices 4 ms
(PyTorch, issue 143281).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from teho.source.gpu_calls.call import GpuCall, InFile, functions_that_call
from teho.source.options.uses import name_of
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place, is_imported
from teho.source.slow_calls.loop_parts import imported_name

__all__ = ["find_batched_qr"]

_QR = {
    "torch.linalg.qr": "torch",
    "torch.qr": "torch",
    "cupy.linalg.qr": "cupy",
    "jax.numpy.linalg.qr": "jax",
    "jax.scipy.linalg.qr": "jax",
}
_MAPS = frozenset(("torch.vmap", "torch.func.vmap", "jax.vmap"))
_DEEPEST = 4
_BATCH_ONLY = frozenset(("bmm", "baddbmm"))
"""Functions for batches of matrices only."""
_MAKERS = frozenset(("zeros", "ones", "empty", "randn", "rand"))
"""Functions whose arguments may be the sizes: `torch.zeros(8, n, n)`."""
_SHAPERS = frozenset(("repeat", "expand", "view", "reshape"))
"""Methods whose arguments may be the sizes."""
_WITH_SHAPE = frozenset(
    (*_MAKERS, *_SHAPERS, "full", "normal", "uniform", "tile", "standard_normal", "broadcast_to")
)
"""Functions and methods that may have the shape as one argument."""
_AXES = frozenset(("dim1", "dim2", "axis1", "axis2"))
_SWAPS = frozenset(("transpose", "permute", "swapaxes", "swapdims"))
_MATRICES = 3
"""Dimensions of an array with many matrices."""


def find_batched_qr(source: InFile) -> Iterator[GpuCall]:
    """Yield the calls that decompose many matrices.

    Args:
        source: the file.
    """
    for call, place, name in source.calls():
        mapped = _mapped(call, source, place)
        library = _QR.get(mapped or name)
        if library is None or not call.args or isinstance(call.args[0], ast.Starred):
            continue
        if not mapped and (not _is_reduced(call) or not _has_many(call, place.function)):
            continue
        module = {"torch": "torch", "cupy": "cupy", "jax": "jax.numpy"}[library]
        usual = {"torch": "torch", "cupy": "cp", "jax": "jnp"}[library]
        words = {"lib": imported_name(module, place.function, usual)}
        words["matrix"] = ast.unparse(call.args[0])
        yield GpuCall(f"qr_one_by_one_{library}", call, words)


def _mapped(call: ast.Call, source: InFile, place: Place) -> str:
    """Return the name of the function of `torch.vmap(torch.linalg.qr)(x)`; else an empty text."""
    match call.func:
        case ast.Call(args=[function], keywords=[]) as outer:
            is_map = name_of(outer.func, place, source.purity.program) in _MAPS
            return name_of(function, place, source.purity.program) if is_map else ""
    return ""


def _is_reduced(call: ast.Call) -> bool:
    """Return whether a call gives the usual Q, which has as many columns as the matrix."""
    if len(call.args) > 1:
        return False
    given = {word.arg: word.value for word in call.keywords}
    mode = given.pop("mode", None)
    is_usual = mode is None or (isinstance(mode, ast.Constant) and mode.value == "reduced")
    return is_usual and not given


def _has_many(call: ast.Call, function: Function) -> bool:
    """Return whether the source shows that an array consists of many matrices."""
    if _is_many(call.args[0], function, 0):
        return True
    for node in function.nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if value is call:
                return any(
                    isinstance(one, ast.Name) and _is_used_as_many(one.id, function)
                    for one in names
                )
    return False


def _is_many(node: ast.expr, function: Function, depth: int) -> bool:
    """Return whether an expression certainly has at least three dimensions."""
    if _has_shape(node, function):
        return True
    if not isinstance(node, ast.Name) or depth > _DEEPEST:
        return False
    name = node.id
    if _is_used_as_many(name, function):
        return True
    if any(
        one.value is not None and one.loop is None and _is_many(one.value, function, depth + 1)
        for one in function.assigned.get(name, ())
    ):
        return True
    if name not in function.params_of_call:
        return False
    number = function.params_of_call.index(name)
    return any(
        len(call.args) > number and _is_many(call.args[number], outer, depth + 1)
        for call, outer in functions_that_call(function)
    )


def _has_shape(node: ast.expr, function: Function) -> bool:
    """Return whether a call makes an array with three dimensions: `torch.zeros(8, n, n)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args):
            shapes = [one.elts for one in args if isinstance(one, (ast.Tuple, ast.List))]
            is_method = not is_imported(root_name(owner), function)
            is_sizes = name in (_SHAPERS if is_method else _MAKERS)
            parts = shapes[0] if shapes else args
            is_shape = name in _WITH_SHAPE if shapes else is_sizes
            is_open = any(isinstance(one, ast.Starred) for one in parts)
            return is_shape and not is_open and len(parts) >= _MATRICES
    return False


def _is_used_as_many(name: str, function: Function) -> bool:
    """Return whether code uses an array in a way that needs three dimensions."""
    return any(_needs_many(node, name) for node in function.nodes)


def _needs_many(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=owner), slice=ast.Tuple(elts=parts)):
            known = [one for one in parts if not _is_new_axis(one)]
            return owner == name and len(known) >= _MATRICES
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=args, keywords=words):
            is_own = dotted_name(owner) == name
            given = [*([owner] if is_own else []), *args]
            if not any(dotted_name(one) == name for one in given):
                return False
            if method in _BATCH_ONLY:
                return True
            if method == "diagonal":
                return any(word.arg in _AXES for word in words)
            return method in _SWAPS and any(
                isinstance(one, ast.Constant) and one.value == _MATRICES - 1 for one in args
            )
    return False


def _is_new_axis(node: ast.expr) -> bool:
    is_none = isinstance(node, ast.Constant) and node.value in (None, ...)
    return is_none or (isinstance(node, ast.Attribute) and node.attr == "newaxis")
