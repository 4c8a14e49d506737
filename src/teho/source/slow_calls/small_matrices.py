"""Finds loops of JAX whose passes multiply a few small matrices, as those of a Kalman filter.

Starting the operations of a pass takes the time, so numbers of 32 bits would not be faster. The
covariances of a filter often need 64 bits.
"""

from __future__ import annotations

import ast
import functools

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import length
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, SourceFile, dotted_name

__all__ = ["find_small_matrices"]

_LOOPS = frozenset(("scan", "fori_loop", "while_loop", "associative_scan"))
_UNITS = frozenset(("eye", "identity"))
_MATRICES = frozenset(("normal", "uniform", "zeros", "ones", "full", "truncated_normal"))
_MOST_ROWS = 32


@functools.lru_cache(maxsize=64)
def find_small_matrices(path: str, file: SourceFile) -> tuple[CostlyOption, ...]:
    """Return the loop of JAX in a file that multiplies only small matrices.

    The program's unit and diagonal matrices show how large its matrices are. There must be no
    other matrices, such as the weights of a network.

    Args:
        path: the file.
        file: its content.
    """
    loop: ast.Call | None = None
    rows: list[int | None] = []
    products = 0
    for function in file.module.every():
        for node in function.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                products += 1
            if not isinstance(node, ast.Call):
                continue
            if any(isinstance(one, ast.Tuple) and len(one.elts) > 1 for one in node.args) and (
                dotted_name(node.func).rpartition(".")[2] in _MATRICES
            ):
                return ()
            _, _, last = dotted_name(node.func).rpartition(".")
            if last in _LOOPS and "lax" in dotted_name(node.func):
                loop = node
            elif last in _UNITS and node.args:
                rows.append(_number(node.args[0], function))
            elif last == "diag" and node.args and isinstance(node.args[0], ast.List):
                rows.append(length(node.args[0], function))
    known = [one for one in rows if one is not None]
    is_small = bool(known) and len(known) == len(rows) and max(known) <= _MOST_ROWS
    if loop is not None and products and is_small:
        name = file.function_at(loop.lineno).name or "<module>"
        at = Frame(path, name, loop.lineno, file.text_of(loop))
        return (CostlyOption(name="small_matrices_by_jax", at=at, lines=()),)
    return ()


def _number(node: ast.expr, function: Function) -> int | None:
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, function)
        node = found[0] if found is not None else node
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) else None
