"""How places, ranks and figures are put into sentences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain.scenario_parts import NodePart, gpu, scenario
from teho.explain.places import NodeGpu, each_of, name_all
from teho.explain.wording import (
    capital,
    joined,
    listed,
    longest_places,
    numbered,
    ranks_on,
    short_numbers,
    span,
    the_ranks,
)
from teho.model.stack import Frame


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c", "d"], "a, b, c and d"),
        (["a", "b", "c", "d", "e"], "a, b, c, d and 1 more"),
        ([f"n{i}" for i in range(64)], "n0, n1, n2, n3 and 60 more"),
    ],
)
def test_listed(names, text):
    assert listed(names) == text


def test_listed_says_what_the_others_are():
    assert listed(list("abcdefgh"), "nodes") == "a, b, c, d and 4 more nodes"
    assert listed(list("ab"), "nodes") == "a and b"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([1, 0], "0,1"), ([2, 1, 0], "0–2"), ([0, 2, 4, 5, 6, 7], "0,2,4–7")],
)
def test_numbers_of_a_column_are_short(numbers, text):
    assert short_numbers(numbers) == text


def test_joined_leaves_nothing_out():
    assert joined(list("abcdef")) == "a, b, c, d, e and f"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([7], "7"),
        ([0, 1], "0 and 1"),
        ([0, 1, 2], "0–2"),
        ([9, 0, 3, 2, 1], "0–3 and 9"),
        ([0, 2, 4, 6, 8, 10, 11, 12], "0, 2, 4, 6 and 4 more"),
    ],
)
def test_numbered(numbers, text):
    assert numbered(numbers) == text


@given(st.sets(st.integers(0, 200), min_size=1))
def test_no_number_is_lost(numbers):
    text = numbered(numbers)
    more = re.search(r"and (\d+) more$", text)
    left = int(more.group(1)) if more else 0
    named = set()
    for first, last in re.findall(r"(\d+)(?:–(\d+))?", text[: more.start()] if more else text):
        named |= set(range(int(first), int(last or first) + 1))
    assert named <= numbers
    assert len(named) + left == len(numbers)
    assert not named or left == 0 or max(named) < max(numbers)


def test_ranks():
    assert the_ranks([7]) == "rank 7"
    assert ranks_on(range(8, 16), ["r01g02"] * 8) == "ranks 8–15 on r01g02"
    assert ranks_on([3, 9], ["a", "b"]) == "ranks 3 and 9 on a and b"
    assert ranks_on([3], [""]) == "rank 3"
    assert capital("rank 3") == "Rank 3"


def test_span():
    assert span([12.0], "%") == "12 %"
    assert span([31.0, 12.0, 20.0], "%") == "12 % to 31 %"
    assert span([12.001, 12.004], "%") == "12 %"


def places(counts, names=None):
    """Return the GPUs of nodes that have so many."""
    names = names or [f"r01g{number:02d}" for number in range(1, len(counts) + 1)]
    parts = (
        NodePart(name, gpus=[gpu()] * count) for name, count in zip(names, counts, strict=True)
    )
    _, summary = scenario(*parts)
    return [NodeGpu(node, one) for node in summary.nodes for one in node.gpus]


class TestPlaces:
    def test_one(self):
        assert name_all(places([1])) == "GPU 0 on r01g01"

    def test_several_of_one_node(self):
        assert name_all(places([8])) == "GPUs 0–7 on r01g01"

    def test_the_same_of_each_node(self):
        assert name_all(places([8, 8])) == "GPUs 0–7 on each of r01g01 and r01g02"

    def test_many_nodes(self):
        text = "GPUs 0–7 on each of r01g01, r01g02, r01g03, r01g04 and 60 more nodes"
        assert name_all(places([8] * 64)) == text

    def test_different_ones(self):
        gpus = places([4, 4, 4])
        assert name_all([gpus[1], gpus[2], gpus[7]]) == "GPUs 1 and 2 on r01g01 and GPU 3 on r01g02"

    def test_too_many_different_ones(self):
        gpus = places([8] * 6)
        odd = [gpus[8 * number + place] for number in range(6) for place in range(number + 1)]
        assert name_all(odd) == (
            "GPU 0 on r01g01, GPUs 0 and 1 on r01g02, GPUs 0–2 on r01g03, GPUs 0–3 on r01g04 and "
            "11 more"
        )

    def test_nodes(self):
        _, summary = scenario(NodePart("a"), NodePart("b"))
        assert name_all(summary.nodes) == "a and b"
        assert each_of(summary.nodes) == "each of a and b"
        assert each_of(summary.nodes[:1]) == "a"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ((20, 19, 12), "a.py:0, a.py:1 and a.py:2"),
        ((20, 19, 12, 11), "a.py:0, a.py:1 and a.py:2"),
        ((40, 8, 7), "a.py:0"),
        ((9, 8, 7), "a.py:0"),  # many short lines
        ((40, 10), "a.py:0 and a.py:1"),
    ],
)
def test_the_lines_with_most_of_the_time(seconds, text):
    lines = [(Frame("/home/ada/a.py", "f", n, ""), s) for n, s in enumerate(seconds)]
    assert longest_places(lines, 50.0) == text
    assert longest_places([*lines[:1], *lines[:1]], 50.0) == "a.py:0"  # the same line twice
