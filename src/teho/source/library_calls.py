"""Which arguments a library gives a function of the program the same in each call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["fixed_parameters"]

_ONE_VARIES = (
    *("minimize", "minimize_scalar", "least_squares", "leastsq", "root", "root_scalar", "fsolve"),
    *("brentq", "brenth", "bisect", "ridder", "toms748", "newton", "fixed_point", "shgo", "direct"),
    *("differential_evolution", "dual_annealing", "brute", "fminbound", "golden", "brent"),
    *("fmin", "fmin_powell", "fmin_cg", "fmin_bfgs", "fmin_ncg", "fmin_l_bfgs_b", "fmin_tnc"),
)
_VARYING = {
    **{f"scipy.optimize.{name}": 1 for name in _ONE_VARIES},
    "scipy.integrate.quad": 1,
    "scipy.integrate.dblquad": 2,
    "scipy.integrate.solve_ivp": 2,
    "scipy.integrate.odeint": 2,
}
"""Functions of libraries that call their first argument again and again: the number of arguments
that differ. The arguments after these are the `args` of the call: always the same."""
_KEYWORDS = frozenset(("fun", "func", "f", "function"))
_OF_ROWS = frozenset(("map", "filter"))
"""Methods of Hugging Face data sets: they call a function for each row, with `fn_kwargs`."""


def fixed_parameters(level: Level, caller: Level, program: Program) -> Sequence[str]:
    """Return the parameters of a function that get the same values in each call by a library.

    `minimize(cost, start, args=(table,))` calls `cost(x, table)`: `x` differs, `table` is the same.

    Args:
        level: the function, which a library calls.
        caller: the function of the program that calls the library.
        program: the files of the program.
    """
    call = caller.node
    if not isinstance(call, ast.Call):
        return ()
    called = program.called(call, caller.place)
    varying = _VARYING.get(called) if isinstance(called, str) else None
    given = [*call.args[:1], *(word.value for word in call.keywords if word.arg in _KEYWORDS)]
    # A `partial`, for example, gives the function other arguments first.
    is_itself = any(_is_function(one, level, caller.place, program) for one in given)
    if not is_itself:
        return ()
    if varying is not None:
        return level.function.params_of_call[varying:]
    return [*_given_to_rows(call)]


def _given_to_rows(call: ast.Call) -> Iterator[str]:
    """Yield the parameters in `table.map(encode, fn_kwargs={"path": path})`: `path`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _OF_ROWS:
        return
    for word in call.keywords:
        if word.arg == "fn_kwargs" and isinstance(word.value, ast.Dict):
            keys = [one for one in word.value.keys if isinstance(one, ast.Constant)]
            yield from (one.value for one in keys if isinstance(one.value, str))


def _is_function(value: ast.expr, level: Level, at: Place, program: Program) -> bool:
    function = level.function
    if isinstance(value, ast.Name):
        named = program.named(value.id, at)
        return isinstance(named, Place) and named.function.node is function.node
    if isinstance(value, ast.Attribute):  # a bound method
        return function.owner is not None and value.attr == function.name
    return value is function.node  # a lambda
