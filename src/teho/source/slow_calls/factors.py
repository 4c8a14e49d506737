"""Finds systems of equations with the same matrix that a loop solves with a new factorisation.

`spsolve(matrix, b)` and `numpy.linalg.solve(matrix, b)` factorise the matrix in each call. If the
matrix stays the same and only the right-hand side changes, one factorisation is enough. The source
shows that the loop does not change the matrix.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.inputs import Inputs, Value
from teho.source.parsed import Loop
from teho.source.purity import Purity
from teho.source.stack import Level, argument

__all__ = ["find_factorised_again"]

_SPARSE = frozenset(
    f"scipy.sparse.linalg.{name}spsolve" for name in ("", "dsolve.", "dsolve.linsolve.")
)
_DENSE = frozenset(("numpy.linalg.solve", "scipy.linalg.solve"))
_HARMLESS = frozenset(("use_umfpack", "check_finite", "permc_spec", "assume_a", "sym_pos"))
"""Arguments without which the result stays the same, except for rounding."""
_LEAST_SYSTEMS = 4


class _Solves(NamedTuple):
    """A call that factorises a matrix and solves one system."""

    matrix: ast.expr
    side: ast.expr
    is_sparse: bool


def find_factorised_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that factorises the same matrix in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    call = level.node
    solves = _solves(call, level, purity) if isinstance(call, ast.Call) else None
    if solves is None or not isinstance(call, ast.Call):
        return None
    for number, loop in _loops(levels):
        if _of(solves.side, levels, number, loop, purity) is Value.SAME:
            return None  # the whole result is the same: another search finds this
        if _of(solves.matrix, levels, number, loop, purity) is Value.SAME:
            return _found(call, solves, levels, number, loop)
    return None


def _solves(call: ast.Call, level: Level, purity: Purity) -> Union[_Solves, None]:
    called = purity.program.called(call, level.place)
    if called not in _SPARSE | _DENSE or len(call.args) != 2:
        return None
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if any(word.arg not in _HARMLESS for word in call.keywords):
        return None
    matrix, side = call.args
    return _Solves(matrix, side, called in _SPARSE)


def _loops(levels: Sequence[Level]) -> Iterator[tuple[int, Loop]]:
    """Yield the loops around a stack's innermost line, the outermost first."""
    for number, level in enumerate(levels):
        if level.is_called_again:
            yield number, level.as_loop()
        for loop in level.loops():
            if may_iterate(loop, level.function, _LEAST_SYSTEMS):
                yield number, loop


def _of(node: ast.expr, levels: Sequence[Level], number: int, loop: Loop, purity: Purity) -> Value:
    """Return how an argument of the innermost call differs between the iterations of a loop."""
    whole = ast.Tuple(elts=[node], ctx=ast.Load())
    changed = [*levels[:-1], levels[-1]._replace(node=whole)]
    return Inputs(changed, number, loop, purity).of_call(len(levels) - 1)


def _found(
    call: ast.Call, solves: _Solves, levels: Sequence[Level], number: int, loop: Loop
) -> CostlyOption:
    level, outer = levels[-1], levels[number]
    frame, side = level.frame, ast.unparse(solves.side)
    module = ast.unparse(call.func).rpartition(".")[0]
    matrix = ast.unparse(_outside(solves.matrix, levels, number))
    if solves.is_sparse:
        place = f"{module}." if module else "scipy.sparse.linalg."
        column = matrix if matrix.endswith(".tocsc()") else f"{matrix}.tocsc()"
        first, new = f"solver = {place}splu({column})", f"solver.solve({side})"
        name = "sparse_factorised_again"
    else:
        first = f"factors = scipy.linalg.lu_factor({matrix})"
        new = f"scipy.linalg.lu_solve(factors, {side})"
        name = "matrix_factorised_again"
    is_function = loop.node is outer.function.node
    file = outer.frame.file.rpartition("/")[2]
    passed = first.partition(" ")[0]
    return CostlyOption(
        name=name,
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "first": first,
            "new": new,
            "before": f"once, before `{outer.function.name}` is called"
            if is_function
            else f"directly before the loop at {file}:{loop.line}",
            "given": ""
            if number == len(levels) - 1 and not is_function
            else f" Give `{passed}` to `{level.function.name}` as an argument.",
        },
    )


def _outside(node: ast.expr, levels: Sequence[Level], number: int) -> ast.expr:
    """Return the matrix as the function with the loop names it, if it gives it as an argument."""
    inner = len(levels) - 1
    while inner > number and isinstance(node, ast.Name):
        given = argument(levels, inner, node.id)
        if given is None:
            break
        node, inner = given, inner - 1
    return node
