"""Finds implicit solvers of SciPy that treat a sparse Jacobian as a dense matrix.

Without `jac` and `jac_sparsity`, `solve_ivp` calls the right-hand side once for each unknown to get
the Jacobian, and factorises a dense matrix. The source shows that each unknown depends only on its
neighbours: then few calls are enough, and the matrix is sparse.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.neighbours import uses_only_neighbours
from teho.source.options.uses import value_text
from teho.source.parsed import Function
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_dense_jacobian"]

_SOLVER = "scipy.integrate.solve_ivp"
_PARAMETERS = ("fun", "t_span", "y0", "method")
_METHODS = {
    **dict.fromkeys(("BDF", "Radau", "scipy.integrate.BDF", "scipy.integrate.Radau"), "implicit"),
    **dict.fromkeys(("LSODA", "scipy.integrate.LSODA"), "lsoda"),
}
_SAID = frozenset(("jac", "jac_sparsity", "lband", "uband"))
_DEEPEST = 4


def find_dense_jacobian(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the call on a stack that solves differential equations with a dense Jacobian.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """
    for level in levels:
        call = level.node
        if isinstance(call, ast.Call) and program.called(call, level.place) == _SOLVER:
            return _of_call(call, level, program)
    return None


def _of_call(call: ast.Call, level: Level, program: Program) -> CostlyOption | None:
    given = dict(zip(_PARAMETERS, call.args, strict=False))
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    if not all(word.arg for word in call.keywords) or not _SAID.isdisjoint(given):
        return None
    if not {"fun", "t_span", "y0", "method"} <= given.keys():
        return None
    kind = _METHODS.get(value_text(given["method"], level.place, program))
    fun = _function(given["fun"], level.place, program, 0)
    if kind is None or fun is None or len(fun.function.params_of_call) < 2:
        return None
    if not uses_only_neighbours(fun, fun.function.params_of_call[1], program):
        return None
    frame = level.frame
    text = f"method={ast.unparse(given['method'])}"
    line = given["method"].lineno
    return CostlyOption(
        name="jacobian_dense" if kind == "implicit" else "jacobian_dense_lsoda",
        at=Frame(frame.file, frame.function, line, text),
        lines=(frame,),
        words={
            **_words(given, level),
            "file": frame.file.rpartition("/")[2],
            "line": str(_statement_line(call, level)),
            "call": str(call.lineno),
        },
    )


def _function(node: ast.expr, at: Place, program: Program, depth: int) -> Place | None:
    """Return the program's function that an expression is; None if it is not clear."""
    if depth > _DEEPEST:
        return None
    match node:
        case ast.Lambda():
            return Place(at.path, Function(node, at.function))
        case ast.Name(id=name):
            named = program.named(name, at)
            if isinstance(named, Place):
                return named
            function: Function | None = at.function
            while function is not None and not function.knows(name):
                function = function.parent
            given = function.assigned.get(name, []) if function is not None else []
            if function is None or len(given) != 1 or given[0].value is None or given[0].loop:
                return None
            return _function(given[0].value, Place(at.path, function), program, depth + 1)
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if at.function.owner:
            method = at.function.module.inner.get(f"{at.function.owner.name}.{name}")
            return Place(at.path, method) if method is not None else None
        case ast.Attribute(attr=name):
            named_so = [
                one
                for key, one in at.function.module.inner.items()
                if key.endswith(f".{name}") and one.owner is not None
            ]
            return Place(at.path, named_so[0]) if len(named_so) == 1 else None
        case ast.Call():
            made = program.called(node, at)
            if not isinstance(made, Place):
                return None
            returned = [
                one.value
                for one in made.function.nodes
                if isinstance(one, ast.Return) and one.value
            ]
            return _function(returned[0], made, program, depth + 1) if len(returned) == 1 else None
    return None


def _words(given: dict[str, ast.expr], level: Level) -> dict[str, str]:
    """Return the lines that compute the pattern of the Jacobian.

    A value that is not a number (NaN) goes through sums and products of any size, and a small step
    goes through conditions. So the pattern has all unknowns that a value may depend on. Small steps
    alone are not enough: far from a flame, the change of the reaction is lost in rounding.
    """
    fun, begin, args = ast.unparse(given["fun"]), given["t_span"], given.get("args")
    first = f"{ast.unparse(begin)}[0]"
    if isinstance(begin, (ast.Tuple, ast.List)) and begin.elts:
        first = ast.unparse(begin.elts[0])
    rest = ""
    if isinstance(args, (ast.Tuple, ast.List)):
        rest = "".join(f", {ast.unparse(one)}" for one in args.elts)
    elif args is not None:
        rest = f", *{ast.unparse(args)}"
    if isinstance(given["fun"], ast.Lambda):
        fun = f"({fun})"
    numpy = _numpy(level.function)
    vectorized = given.get("vectorized")
    is_matrix = vectorized is not None and ast.unparse(vectorized) == "True"

    def value(state: str) -> str:
        if is_matrix:
            return f"{fun}({first}, {state}[:, None]{rest}).ravel()"
        return f"{fun}({first}, {state}{rest})"

    begins = f"{numpy}.asarray({ast.unparse(given['y0'])}, dtype=float)"
    points = f"jac_start + {numpy}.diag({numpy}.full(jac_start.size, step))"
    each = f"[{value('jac_u')} != jac_base for jac_u in {points}]"
    return {
        "start": f"jac_start = 0.99 * {begins} + 0.005",
        "base": f"jac_base = {numpy}.asarray({value('jac_start')})",
        "changes": f"jac_changes = [{each} for step in ({numpy}.nan, 0.001)]",
        "pattern": f"jac_pattern = {numpy}.any(jac_changes, axis=0).T",
    }


def _numpy(function: Function) -> str:
    """Return the name of NumPy in a file."""
    outer: Function | None = function
    while outer is not None:
        found = [name for name, module in outer.imports.items() if module == "numpy"]
        if found:
            return found[0]
        outer = outer.parent
    return "np"


def _statement_line(call: ast.Call, level: Level) -> int:
    """Return the first line of the statement that has a call."""
    lines = [
        node.lineno
        for node in level.function.nodes
        if isinstance(node, ast.stmt)
        and node.lineno <= call.lineno
        and (node.end_lineno or 0) >= (call.end_lineno or 0)
    ]
    return max(lines, default=call.lineno)
