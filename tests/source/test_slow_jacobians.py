"""Solvers of differential equations that get no pattern of their Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

from source.test_slow_calls import found

GRID = """
from scipy.integrate import solve_ivp
from scipy import sparse
import scipy.integrate as integrate
N = 300
A = np.ones((N, N))
L = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], (N, N)).tocsr()
{function}
class Column:
    {method}
    def solve(self, start):
        return solve_ivp(self.rates, (0.0, 9.0), start, method="BDF")
def run(start, speed, other):
    column = Column()
    return {call}
"""
CALL = 'solve_ivp(rates, (0.0, 9.0), start, method="BDF", args=(speed,), rtol=1e-5)'
STENCIL = """
def rates(t, u, speed):
    padded = np.concatenate([[0.0], u, [u[-1]]])
    return speed * (padded[2:] - 2 * padded[1:-1] + padded[:-2]) + np.exp(-u)
"""


def solver(function=STENCIL, call=CALL, active=None, method="size = 1"):
    source = GRID.format(function=function, call=call, method=method)
    return found(source, active or call)


def test_the_lines_that_give_the_pattern():
    assert solver() == {
        "jacobian_dense": {
            "start": "jac_start = 0.99 * np.asarray(start, dtype=float) + 0.005",
            "base": "jac_base = np.asarray(rates(0.0, jac_start, speed))",
            "changes": (
                "jac_changes = [[rates(0.0, jac_u, speed) != jac_base for jac_u in "
                "jac_start + np.diag(np.full(jac_start.size, step))] for step in (np.nan, 0.001)]"
            ),
            "pattern": "jac_pattern = np.any(jac_changes, axis=0).T",
            "file": "train.py",
            "line": "26",
            "call": "26",
        }
    }


def test_the_pattern_of_these_lines():
    """The reaction is lost in rounding, and one of two branches is chosen by the unknowns."""

    def rates(t, state, speed):
        heat, fuel = state[:5], state[5:]
        burn = np.exp(-90.0 * (1.0 - heat)) * fuel + np.where(fuel > 1e-12, fuel, 0.0)
        padded = np.concatenate([[0.0], heat, [heat[-1]]])
        spread = speed * (padded[2:] - 2 * padded[1:-1] + padded[:-2])
        return np.concatenate([1e6 * spread + burn, -burn])

    words = solver()["jacobian_dense"]
    names = {"np": np, "start": np.zeros(10), "speed": 2.0, "rates": rates}
    for line in ("start", "base", "changes", "pattern"):
        exec(words[line], names)
    near = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) < 2
    same = np.eye(5, dtype=bool)
    assert names["jac_pattern"].tolist() == np.block([[near, same], [same, same]]).tolist()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (CALL, "jacobian_dense"),
        (CALL.replace("BDF", "Radau"), "jacobian_dense"),
        (CALL.replace("BDF", "LSODA"), "jacobian_dense_lsoda"),
        (CALL.replace("solve_ivp", "integrate.solve_ivp"), "jacobian_dense"),
        (CALL.replace('"BDF"', "integrate.BDF"), "jacobian_dense"),
        ('solve_ivp(rates, (0.0, 9.0), start, "BDF", args=(speed,))', "jacobian_dense"),
        ('solve_ivp(lambda t, u: rates(t, u, 2), (0, 9), start, method="BDF")', "jacobian_dense"),
        # ---- which look like it ----
        (CALL.replace("BDF", "RK45"), None),
        (CALL.replace(', method="BDF"', ""), None),
        (CALL.replace('"BDF"', "other"), None),
        (CALL.replace("rtol", "jac_sparsity=L, rtol"), None),
        (CALL.replace("rtol", "jac=other, rtol"), None),
        (CALL.replace("rtol", "lband=1, uband=1, rtol"), None),
        (CALL.replace("rtol=1e-5", "**other"), None),
        (CALL.replace("rates", "other"), None),
        (CALL.replace("solve_ivp", "other.solve_ivp"), None),
    ],
)
def test_calls(call, name):
    assert list(solver(call=call)) == ([name] if name else [])


def test_arguments_of_the_call():
    call = 'solve_ivp(rates, span, start, method="BDF", args=more, vectorized=True)'
    words = solver(call=call)["jacobian_dense"]
    assert words["base"].endswith("rates(span[0], jac_start[:, None], *more).ravel())")
    assert "[rates(span[0], jac_u[:, None], *more).ravel() != jac_base for" in words["changes"]


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("return speed * L @ u", True),
        ("return np.roll(u, 1) - 2 * u + np.roll(u, -1)", True),
        ("d = np.zeros_like(u); d[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]; return d", True),
        ("a, b = u[:N], u[N:]; return np.concatenate([np.gradient(a) * b, -a * b])", True),
        ("a, b = u.reshape(2, N); return np.stack([a[1:] - b[:-1], b[1:] - a[:-1]]).ravel()", True),
        (("g = u.reshape(N, 4); s = g.sum(axis=1, keepdims=True); "
         "return ((g[1:-1] - g[:-2]) / s[1:-1]).ravel()"), True),
        ("return flux(u) * speed", True),
        (("d = np.zeros(N)\n    for i in range(1, N - 1): d[i] = u[i - 1] - u[i] + u[i + 1]\n"
         "    return d"), True),
        # ---- which look like it ----
        ("return speed * u", False),
        ("return A @ u", False),
        ("return L @ (A @ u)", False),
        ("return (u[1:] - u[:-1]) * u.sum()", False),
        ("return (u[2:] - u[:-2]) / np.max(u)", False),
        ("return np.fft.irfft(np.fft.rfft(u)) * (u[2:] - u[:-2])", False),
        ("g = u.reshape(N, 4); return ((g[1:-1] - g[:-2]) / g.sum(axis=0)).ravel()", False),
        ("place, speed = u[:3], u[3:]; return np.concatenate([speed, -place])", False),
        ("gas, heat = u[:-1], u[-1]; return np.append(gas * heat, heat)", False),
        ("x, y, z = u; return [10 * (y - x), x * (28 - z) - y, x * y - 3 * z]", False),
        ("a = u[0] * GRID; return a[1:] - a[:-1]", False),
        ("return [u[0] - u[1], u[1] - u[0]]", False),
        ("return network(u) * (u[2:] - u[:-2])", False),
        ("return total(u) * (u[2:] - u[:-2])", False),
        ("x = np.arange(N); return u[0] * (x[2:] - 2 * x[1:-1] + x[:-2])", False),
    ],
)  # fmt: skip
def test_which_unknowns_depend_on_each_other(body, is_found):
    function = f"""
def flux(u):
    return u[1:] - u[:-1]
def total(u):
    return u.mean()
def rates(t, u, speed=1.0):
    {body}
"""
    call = 'solve_ivp(rates, (0.0, 9.0), start, method="BDF")'
    assert list(solver(function, call)) == (["jacobian_dense"] if is_found else [])


def test_a_function_that_another_one_makes():
    function = """
def laplacian(u, left, right):
    padded = np.empty(N + 2)
    padded[1:-1] = u
    padded[0], padded[-1] = left, right
    return padded[2:] - 2 * padded[1:-1] + padded[:-2]
def make(lewis):
    def rhs(t, state):
        heat, fuel = state[:N], state[N:]
        burn = fuel * np.exp(-1 / heat)
        return np.concatenate([
            laplacian(heat, 0.0, heat[-1]) + burn, laplacian(fuel, 1.0, fuel[-1]) / lewis - burn])
    return rhs
"""
    call = 'solve_ivp(rates, (0.0, 9.0), start, method="BDF")'
    made = f"{call} if (rates := make(other)) else None"
    assert "jacobian_dense" in solver(function, made, active=call)


def test_a_method():
    method = "def rates(self, t, u): return u[1:] - u[:-1]"
    active = 'solve_ivp(self.rates, (0.0, 9.0), start, method="BDF")'
    assert "jacobian_dense" in solver("", "None", active=active, method=method)
