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


RACE = """
TRACK = 60
TABLES = 4096
class Race:
    def __init__(self, rng):
        self.rng = rng
        self.mine = np.zeros(TABLES, np.int64)
        self.traps = np.zeros(TRACK + 7, bool)
        self.turn = 0
    def throw(self, place):
        first = self.rng.integers(1, 7, size=TABLES)
        one = self.rng.integers(1, 7)
        few = self.rng.normal(size=3)
        place = place + first
        caught = self.traps[np.minimum(place, TRACK)]
        return np.where(caught, np.maximum(place - 5, 0), np.minimum(place, TRACK))
def main():
    race = Race(np.random.default_rng(1))
    cells = (TRACK + 1) ** 2
    value = np.full(cells, 0.5)
    for turn in range(48000):
        moved = race.throw(race.mine)
        here = race.mine * TRACK
        visits = np.bincount(here, minlength=cells)
        seen = visits > 0
        value[seen] += 1 / np.sqrt(visits[seen])
        turns = race.turn + 1
        other = race.pace * 2
"""


@pytest.mark.parametrize(
    ("stack", "is_one"),
    [
        (("race.throw(race.mine)", "self.rng.integers(1, 7, size=TABLES)"), True),
        (("race.throw(race.mine)", "place + first"), True),
        (
            (
                "race.throw(race.mine)",
                "np.where(caught, np.maximum(place - 5, 0), np.minimum(place, TRACK))",
            ),
            True,
        ),
        (("race.mine * TRACK",), True),
        (("visits > 0",), True),
        (("visits[seen]",), True),
        (("race.throw(race.mine)", "self.rng.integers(1, 7)"), False),
        (("race.throw(race.mine)", "self.rng.normal(size=3)"), False),
        (("race.turn + 1",), False),
        (("race.pace * 2",), False),
    ],
)
def test_arrays_that_an_object_has(stack, is_one):
    found = find_slow_calls(*stack_of(RACE, *stack))
    assert any(one.name == "whole_arrays" for one in found) == is_one
