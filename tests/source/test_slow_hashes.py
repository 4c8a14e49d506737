"""Classes whose objects have the same hash although they are not equal, and look-alikes."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

EQUAL = "self.x == other.x and self.y == other.y"
HASH = "hash(self.x + self.y)"
SEARCH = "cell in ice"


def found(
    equal=EQUAL,
    hashed=HASH,
    search=SEARCH,
    made="{Cell(0, 0)}",
    init="self.x, self.y = x, y",
    guard="pass",
    extra="pass",
):
    """Return the words of a hash that collides, of a small program; None if none is found."""
    source = f"""
    class Cell:
        def __init__(self, x, y):
            {init}
        def __eq__(self, other):
            {guard}
            return {equal}
        def __hash__(self):
            return {hashed}
        def move(self):
            {extra}
    def grow(front):
        ice = {made}
        for step in range(1000):
            for cell in front:
                result = {search}
    grow([Cell(1, 2)])
    """
    source = source.replace("            pass\n            return", "            return")
    for one in find_slow_calls(*stack_of(source, search, equal)):
        if one.name == "hashes_collide":
            return one
    return None


def test_names_the_line_of_the_hash_and_a_better_one():
    one = found()
    assert one.at.text == "return hash(self.x + self.y)"
    assert one.at.function == "__hash__"
    assert one.words == {"owner": "Cell", "new": "return hash((self.x, self.y))"}
    assert [line.text for line in one.lines] == [SEARCH]


@pytest.mark.parametrize(
    "changed",
    [
        {"hashed": "hash(self.x) ^ hash(self.y)"},
        {"hashed": "self.x"},
        {"hashed": "1"},
        {"hashed": "hash((self.x, self.y)) % 1000"},
        {"hashed": "hash((self.x // 2, self.y))"},
        {"equal": "(self.x, self.y) == (other.x, other.y)"},
        {"equal": f"isinstance(other, Cell) and {EQUAL}"},
        {"guard": "if not isinstance(other, Cell): return NotImplemented"},
        {"search": "cell not in ice"},
        {"search": "ice.add(cell)"},
        {"search": "ice[cell]", "made": "{Cell(0, 0): 1}"},
        {"search": "ice.get(cell)", "made": "dict()"},
        {"search": "set(front)"},
        {"made": "set(front) | {Cell(3, 4)}"},
    ],
)
def test_other_hashes_and_searches(changed):
    assert found(**changed) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"hashed": "hash((self.x, self.y))"},
        {"hashed": "hash((self.y, self.x))"},
        {"hashed": "hash((self.x, self.y, 3))"},
        {"hashed": "self._hash"},  # computed once
        {"hashed": "hash(repr(self))"},
        {"hashed": "hash(self.name)"},  # another attribute
        {"hashed": "hash(self.x)", "equal": "self.x == other.x"},
        {"search": "cell in ice", "made": "[Cell(0, 0)]"},
        {"search": "cell in ice", "made": "load()"},
        {"search": "cell == front[0]"},
        {"search": "front.index(cell)"},
        {"search": "ice.add(cell)", "made": "Grid()"},
        {"extra": "self.x += 1"},  # its hash would change
        {"equal": "abs(self.x - other.x) < 3"},
        {"equal": "self.x == other.x and self.rows == other.rows", "hashed": "hash(self.x)"},
        {"equal": "self.x == other.y and self.y == other.x"},
        {"equal": "self.x == other.x or self.y == other.y"},
        {"init": "self.x, self.y = list(x), list(y)", "hashed": "len(self.x)"},  # have no hash
    ],
)
def test_look_alikes(changed):
    assert found(**changed) is None


def test_a_comparison_that_a_library_makes():
    source = """
    class Cell:
        def __init__(self, x):
            self.x = x
        def __eq__(self, other):
            return self.x == other.x
        def __hash__(self):
            return self.x // 2
    def grow(front):
        for step in range(1000):
            heapq.merge(front)
    """
    stack = ("heapq.merge(front)", "lib:heapq.py:merge", "self.x == other.x")
    assert list(find_slow_calls(*stack_of(source, *stack))) == []
