"""Finds singular value decompositions that compute more vectors than the program uses.

`numpy.linalg.svd` makes square matrices of vectors: for 5,000 rows and 48 columns, 5,000 vectors of
5,000 numbers. At most 48 of them belong to a singular value. The source shows that the program uses
only the first vectors.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.arrays import Shapes
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_full_vectors"]

_CALLS = frozenset(("numpy.linalg.svd", "scipy.linalg.svd", "torch.linalg.svd"))
_OTHERS = frozenset(("check_finite", "overwrite_a", "lapack_driver", "driver"))
"""Arguments that do not change which vectors are computed."""
_LEAST_RATIO = 2
"""For a matrix that is nearly square, the further vectors take little time."""


def find_full_vectors(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that computes vectors without a singular value; None: none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    words = {word.arg: word.value for word in call.keywords}
    full = words.pop("full_matrices", ast.Constant(value=True))
    is_full = isinstance(full, ast.Constant) and full.value is True
    called = purity.program.called(call, level.place)
    if not is_full or not words.keys() <= _OTHERS or called not in _CALLS:
        return None
    if not _uses_first(call, level.function):
        return None
    ratio = _ratio(levels, purity)
    if ratio is not None and ratio < _LEAST_RATIO:
        return None
    is_known = ratio is not None or _is_centred(call.args[0], level.function)
    others = [word for word in call.keywords if word.arg != "full_matrices"]
    reduced = ast.keyword("full_matrices", ast.Constant(value=False))
    frame = level.frame
    return CostlyOption(
        name="full_singular_vectors" if is_known else "full_singular_vectors_perhaps",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={"new": ast.unparse(ast.Call(call.func, call.args, [*others, reduced]))},
    )


def _uses_first(call: ast.Call, function: Function) -> bool:
    """Return whether a function uses only the first vectors of a decomposition."""
    targets = [
        target.elts
        for node in function.nodes
        if isinstance(node, ast.Assign) and node.value is call
        for target in node.targets
        if isinstance(target, (ast.Tuple, ast.List))
    ]
    if len(targets) != 1 or len(targets[0]) != 3:
        return False
    left, _, right = targets[0]
    if not isinstance(left, ast.Name) or not isinstance(right, ast.Name):
        return False
    names = {left.id, right.id}
    if len(names) < 2 and names != {"_"}:
        return False
    if any(len(function.assigned[name]) > 1 for name in names - {"_"}):
        return False
    if names & function.outer_names:
        return False
    cut = {
        id(node.value)
        for node in ast.walk(function.node)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and _is_first(node.slice, is_column=node.value.id == left.id)
    }
    loads = [
        node
        for node in ast.walk(function.node)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
    ]
    return bool(loads) and all(id(node) in cut for node in loads)


def _is_first(part: ast.expr, *, is_column: bool) -> bool:
    """Return whether a part of a matrix has only its first columns or rows: `[:, :k]`, `[:k]`."""
    parts = part.elts if isinstance(part, ast.Tuple) else [part]
    if is_column:
        if len(parts) != 2 or not isinstance(parts[0], ast.Slice):
            return False
        parts = parts[1:]
    first = parts[0] if parts else None
    if isinstance(first, ast.Slice):
        lower, upper = first.lower, first.upper
        is_plain = first.step is None and upper is not None
        return is_plain and not _is_negative(upper) and not _is_negative(lower)
    return isinstance(first, ast.Constant) and type(first.value) is int


def _is_negative(node: ast.expr | None) -> bool:
    return isinstance(node, ast.UnaryOp)


def _ratio(levels: Sequence[Level], purity: Purity) -> float | None:
    """Return how many times as long as wide a matrix is, or the reverse; None: not known."""
    number = len(levels) - 1
    call = levels[number].node
    matrix = call.args[0] if isinstance(call, ast.Call) else None
    shape = Shapes(levels, purity.program).of(number, matrix) if matrix is not None else None
    if shape is None or len(shape) < 2:
        return None
    rows, columns = shape[-2:]
    if rows is None or columns is None or min(rows, columns) < 1:
        return None
    return max(rows, columns) / min(rows, columns)


def _is_centred(node: ast.expr, function: Function) -> bool:
    """Return whether a matrix has the rows of a table less their mean: it is hardly ever square."""
    found = assigned_value(node.id, function) if isinstance(node, ast.Name) else None
    node = found[0] if found is not None else node
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Call(func=ast.Attribute(attr="mean"))):
            return ast.unparse(left) in ast.unparse(node.right)
        case ast.BinOp(op=ast.Div(), left=inner):
            return _is_centred(inner, function)
    return False
