"""Loops that factorise the same matrix again, and loops that do not."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

GRID = """
import scipy.sparse.linalg as spl
def scenario(rng, base):
    return base * rng.uniform(0.7, 1.3, base.size)
def main(matrix, base, rng):
    for k in range(130):
        angles = spl.spsolve(matrix, scenario(rng, base))
        print(angles.max())
"""
CALL = "spl.spsolve(matrix, scenario(rng, base))"
DENSE = """
def step(system, side):
    return np.linalg.solve(system, side)
def main(system, sides):
    out = []
    for side in sides:
        out.append(step(system, side))
"""
DENSE_STACK = ("step(system, side)", "np.linalg.solve(system, side)")


def found(source, *stack):
    for one in find_slow_calls(*stack_of(source, *stack)):
        if one.name.endswith("_factorised_again"):
            return one
    return None


def changed(source, *changes):
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_a_sparse_matrix():
    one = found(GRID, CALL, "lib:scipy/sparse/linalg/_dsolve/linsolve.py:spsolve")
    assert one.name == "sparse_factorised_again"
    assert one.at.text == CALL
    assert one.words == {
        "first": "solver = spl.splu(matrix.tocsc())",
        "new": "solver.solve(scenario(rng, base))",
        "before": "directly before the loop at train.py:13",
        "given": "",
    }


def test_a_matrix_of_a_function_around():
    one = found(DENSE, *DENSE_STACK, "lib:numpy/linalg/_linalg.py:solve")
    assert one.name == "matrix_factorised_again"
    assert one.words["first"] == "factors = scipy.linalg.lu_factor(system)"
    assert one.words["new"] == "scipy.linalg.lu_solve(factors, side)"
    assert one.words["given"] == " Give `factors` to `step` as an argument."


def test_a_function_that_a_library_calls_again():
    source = """
    from scipy.integrate import solve_ivp
    from scipy.sparse.linalg import spsolve
    MASS = load_mass()
    def rate(t, y):
        return spsolve(MASS, -y)
    def main(y):
        solve_ivp(rate, (0, 1), y)
    """
    one = found(
        source, "solve_ivp(rate, (0, 1), y)", "lib:scipy/integrate/_ivp/ivp.py:solve_ivp",
        "spsolve(MASS, -y)",
    )  # fmt: skip
    assert one.words["first"] == "solver = scipy.sparse.linalg.splu(MASS.tocsc())"
    assert one.words["before"] == "once, before `rate` is called"


@pytest.mark.parametrize(
    ("source", "stack"),
    [
        # The matrix changes: a new one, an item of the loop, or new values.
        (changed(GRID, "print(", "matrix = matrix * 1.1\n        print("), (CALL,)),
        (changed(GRID, "for k in range(130)", "for matrix in base"), (CALL,)),
        (changed(GRID, "print(", "matrix.data[:] = angles\n        print("), (CALL,)),
        (changed(GRID, "print(", "refresh(matrix, k)\n        print(", "def main(",
                 "def refresh(m, k):\n    m.data += k\ndef main("), (CALL,)),
        (changed(GRID, "spsolve(matrix,", "spsolve(matrix + k * base,"),
         (CALL.replace("(matrix,", "(matrix + k * base,"),)),
        (changed(DENSE, "side in sides", "system, side in sides"), DENSE_STACK),
        # No loop, a short one, and one that ends at once.
        (changed(GRID, "for k in range(130):", "if base is not None:"), (CALL,)),
        (changed(GRID, "range(130)", "range(2)"), (CALL,)),
        (changed(GRID, "print(angles.max())", "break"), (CALL,)),
        # Another call.
        (changed(GRID, "spl.spsolve(", "spl.splu("), (CALL.replace("spsolve", "splu"),)),
        (changed(GRID, "spl.spsolve(", "solver.spsolve("), (CALL.replace("spl.", "solver."),)),
        (changed(DENSE, "np.linalg.solve(system, side)", "np.linalg.lstsq(system, side)"),
         (DENSE_STACK[0], "np.linalg.lstsq(system, side)")),
        (changed(DENSE, "solve(system, side)", "solve(system, side, **options)"),
         (DENSE_STACK[0], "np.linalg.solve(system, side, **options)")),
    ],
)  # fmt: skip
def test_look_alikes(source, stack):
    assert found(source, *stack) is None


def test_the_same_system_is_another_finding():
    source = changed(GRID, "spsolve(matrix, scenario(rng, base))", "spsolve(matrix, base)")
    assert found(source, "spl.spsolve(matrix, base)") is None
