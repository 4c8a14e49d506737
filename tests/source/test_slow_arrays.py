"""Lines that work on whole arrays, and lines that work on single values."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

PROGRAM = """
LENGTH = 1600
def crossing(chain):
    code = chain[0] * 4096 + chain[1]
    code.sort()
    return bool((code[1:] == code[:-1]).any())
def main(given):
    rng = np.random.default_rng(1)
    chain = np.zeros((3, LENGTH))
    chain[0] = np.arange(LENGTH)
    pivots = rng.integers(1, LENGTH - 1, 240000)
    noise = rng.normal(size=LENGTH)
    unit = np.zeros(3)
    table = [0.0] * LENGTH
    grid = np.loadtxt(given)
    for step in range(240000):
        pivot = pivots[step]
        tail = chain[:, pivot + 1:]
        centre = chain[:, pivot:pivot + 1]
        trial = chain.copy()
        trial[:, pivot + 1:] = centre + (tail - centre)
        if not crossing(trial):
            chain = trial
        value = math.sqrt(noise[step])
        x = noise[step] + noise[step - 1]
        row = unit + 1
        local = unit * unit[0]
        table[step] = x + value
        cell = grid[step] + 1
        noise += np.sin(noise)
        norm = chain.var(axis=1)
        near = np.minimum(noise, 3)
        item = table.index(x)
"""


def is_on_array(*stack):
    return any(one.name == "whole_arrays" for one in find_slow_calls(*stack_of(PROGRAM, *stack)))


@pytest.mark.parametrize(
    "stack",
    [
        ("crossing(trial)", "code.sort()"),
        ("crossing(trial)", "(code[1:] == code[:-1]).any()"),
        ("crossing(trial)", "code[1:] == code[:-1]"),
        ("crossing(trial)", "chain[0] * 4096"),
        ("chain.copy()",),
        ("tail - centre",),
        ("chain[:, pivot + 1:]",),
        ("trial[:, pivot + 1:]",),
        ("noise += np.sin(noise)",),
        ("np.sin(noise)",),
        ("chain.var(axis=1)",),
        ("np.minimum(noise, 3)",),
        ("np.arange(LENGTH)",),
    ],
)
def test_whole_arrays(stack):
    assert is_on_array(*stack)


@pytest.mark.parametrize(
    "stack",
    [
        ("pivots[step]",),
        ("math.sqrt(noise[step])",),
        ("noise[step]",),
        ("noise[step] + noise[step - 1]",),
        ("unit + 1",),  # three elements
        ("unit * unit[0]",),
        ("x + value",),
        ("table[step]",),
        ("table.index(x)",),
        ("grid[step] + 1",),  # of unknown length
        ("np.loadtxt(given)",),
    ],
)
def test_single_values(stack):
    assert not is_on_array(*stack)
