"""Functions that a library calls again and again: which arguments are the same each time."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.repeated import find_repeated

IMPORTS = """
from functools import partial
from scipy.integrate import nquad, solve_ivp
from scipy.optimize import curve_fit, least_squares, minimize
"""
OPTIMIZE = "lib:scipy/optimize/_optimize.py:_minimize_neldermead"
INTEGRATE = "lib:scipy/integrate/_ivp/ivp.py:solve_ivp"
QUAD = "lib:scipy/integrate/_quadpack_py.py:nquad"


def found(source, *stack):
    again = find_repeated(*stack_of(IMPORTS + source, *stack))
    return [(one.call.text, one.loop.text) for one in again]


MODEL = """
class Model:
    def __init__(self, gap):
        self.gap = gap
        self.length = 1.0
        self.theta = np.zeros(3)
    def kernel(self):
        return np.exp(-self.gap / self.theta[0])
    def covariance(self, theta):
        tide, length = np.exp(theta)
        k = np.sqrt(tide * self.gap)
        return k / length
    def cost(self, theta):
        {body}
def main(gap):
    model = Model(gap)
    best = minimize(model.cost, np.zeros(3))
"""
CALLS_COST = "minimize(model.cost, np.zeros(3))"
VARYING = {
    "an argument": ("return np.exp(theta)", "np.exp(theta)"),
    "unpacked": ("a, b = theta\n        return np.exp(self.gap * a)", "np.exp(self.gap * a)"),
    "unpacked results": (
        "a, b = np.exp(theta)\n        return np.exp(self.gap / a)",
        "np.exp(self.gap / a)",
    ),
    "unpacked with a star": (
        "a, *rest = theta\n        return np.cumsum(rest)",
        "np.cumsum(rest)",
    ),
    "a part": ("return np.exp(self.gap * theta[3:])", "np.exp(self.gap * theta[3:])"),
    "a dictionary": (
        "p = dict(zip(('a', 'b'), theta))\n        return np.exp(self.gap * p['a'])",
        "np.exp(self.gap * p['a'])",
    ),
    "a loop over parameters": (
        "for value in theta:\n            np.multiply.outer(self.gap, value).sum()",
        "np.multiply.outer(self.gap, value).sum()",
    ),
    "a comprehension": (
        "scales = [np.exp(one) for one in theta]\n        return np.outer(scales, scales)",
        "np.outer(scales, scales)",
    ),
    "attributes that a loop sets": (
        (
            "for name, value in zip(NAMES, theta):\n            setattr(self, name, value)\n"
            "        return np.exp(self.gap / self.length)"
        ),
        "np.exp(self.gap / self.length)",
    ),
    "attributes in a dictionary": (
        "self.__dict__.update(length=theta[0])\n        return np.exp(self.gap / self.length)",
        "np.exp(self.gap / self.length)",
    ),
    "attributes of `vars`": (
        "vars(self)['length'] = theta[0]\n        return np.exp(self.gap / self.length)",
        "np.exp(self.gap / self.length)",
    ),
}


@pytest.mark.parametrize(("body", "text"), VARYING.values(), ids=[*VARYING])
def test_the_parameters_of_an_optimised_method_differ_in_each_call(body, text):
    assert found(MODEL.replace("{body}", body), CALLS_COST, OPTIMIZE, text) == []


def test_parameters_that_a_method_gives_to_another_method():
    source = MODEL.replace("{body}", "return np.linalg.slogdet(self.covariance(theta))[1]")
    stack = (CALLS_COST, OPTIMIZE, "self.covariance(theta)", "np.sqrt(tide * self.gap)")
    assert found(source, *stack) == []
    source = MODEL.replace("{body}", "self.theta[:] = theta\n        return self.kernel()")
    stack = (CALLS_COST, OPTIMIZE, "self.kernel()", "np.exp(-self.gap / self.theta[0])")
    assert found(source, *stack) == []


def test_what_does_not_depend_on_the_parameters_is_the_same():
    source = MODEL.replace("{body}", "return theta @ np.exp(self.gap)")
    expected = [("np.exp(self.gap)", "def cost(self, theta)")]
    assert found(source, CALLS_COST, OPTIMIZE, "np.exp(self.gap)") == expected
    source = """
class Misfit:
    def __init__(self, s):
        self.s = s
    def __call__(self, theta):
        model = self.s / np.exp(theta[3:])[:, None]
        return (np.arcsinh(model) - np.arcsinh(self.s)).mean()
def main(s):
    misfit = Misfit(s)
    best = minimize(misfit, np.zeros(2))
"""
    stack = ("minimize(misfit, np.zeros(2))", OPTIMIZE)
    assert found(source, *stack, "np.arcsinh(model)") == []
    expected = [("np.arcsinh(self.s)", "def __call__(self, theta)")]
    assert found(source, *stack, "np.arcsinh(self.s)") == expected


FURTHER = {
    "args": ("minimize(cost, start, args=(matrix,))", OPTIMIZE, True),
    "args of a residual": ("least_squares(cost, start, args=(matrix,))", OPTIMIZE, True),
    "a keyword": ("minimize(fun=cost, x0=start, args=(matrix,))", OPTIMIZE, True),
    "without an outer function": (None, OPTIMIZE, False),
    "parameters of a curve": ("curve_fit(cost, matrix, start)", OPTIMIZE, False),
    "a partial": ("minimize(partial(cost, matrix), start)", OPTIMIZE, False),
    "a callback": ("minimize(other, start, callback=cost)", OPTIMIZE, False),
    "another function": ("minimize(other, start, args=(matrix,))", OPTIMIZE, False),
    "several integrals": ("nquad(cost, [(0, 1)] * 2)", QUAD, False),
    "the state of an equation": ("solve_ivp(cost, (0, 1), start)", INTEGRATE, False),
}


@pytest.mark.parametrize(("call", "library", "is_same"), FURTHER.values(), ids=[*FURTHER])
def test_further_arguments_are_the_same_only_if_the_library_gives_them_so(call, library, is_same):
    source = f"""
def cost(x, matrix):
    inverse = np.linalg.inv(matrix)
    return inverse @ x
def main(matrix, start):
    best = {call or "None"}
"""
    stack = [*filter(None, (call,)), library, "np.linalg.inv(matrix)"]
    expected = [("np.linalg.inv(matrix)", "def cost(x, matrix)")] if is_same else []
    assert found(source, *stack) == expected


def test_a_lambda_has_its_own_parameters():
    source = """
def cost(x, matrix):
    k = np.diag(x)
    return np.linalg.inv(k) @ np.linalg.inv(matrix)
def main(matrix):
    x = np.linspace(0, 1, 100)
    best = minimize(lambda x: cost(x, matrix), np.zeros(3))
"""
    stack = (
        "minimize(lambda x: cost(x, matrix), np.zeros(3))",
        OPTIMIZE,
        "lambda:cost(x, matrix)",
    )
    assert found(source, *stack, "np.linalg.inv(k)") == []
    expected = [("np.linalg.inv(matrix)", "lambda x: cost(x, matrix)")]
    assert found(source, *stack, "np.linalg.inv(matrix)") == expected


@pytest.mark.parametrize("call", ["sorted(rows, key=score)", "list(map(score, rows))"])
def test_a_function_that_python_calls_for_each_item_gets_other_arguments(call):
    source = f"""
def score(row):
    print("scoring")
    return np.linalg.norm(row)
def main(rows):
    for epoch in range(9):
        best = {call}
"""
    assert found(source, call, "np.linalg.norm(row)") == []


ROWS = "lib:datasets/arrow_dataset.py:Dataset._map_single"
MAP = """
def encode(row, path):
    names = np.loadtxt({used})
    return names[row["number"]]
def main(table, path):
    return {call}
"""


@pytest.mark.parametrize(
    ("call", "used", "is_found"),
    [
        ('table.map(encode, fn_kwargs={"path": path})', "path", True),
        ('table.map(function=encode, fn_kwargs={"path": path})', "path", True),
        ('table.filter(encode, fn_kwargs={"path": path})', "path", True),
        # ---- which look like it ----
        ('table.map(encode, fn_kwargs={"path": path})', 'row["path"]', False),
        ('table.map(encode, fn_kwargs={"other": path})', "path", False),
        ("table.map(encode, fn_kwargs=path)", "path", False),
        ('table.map(partial(encode, path=path), fn_kwargs={"path": path})', "path", False),
        ('table.apply(encode, fn_kwargs={"path": path})', "path", False),
    ],
)
def test_arguments_of_each_row_of_a_data_set(call, used, is_found):
    inner = f"np.loadtxt({used})"
    expected = [(inner, "def encode(row, path)")] if is_found else []
    assert found(MAP.format(call=call, used=used), call, ROWS, inner) == expected
