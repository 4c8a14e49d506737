"""The arithmetic of spans gives the same as sets of moments."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.profile.spans import clipped, intersection, length, subtracted, union

MOMENTS = st.integers(min_value=-30, max_value=30)
ANY = st.lists(st.tuples(MOMENTS, MOMENTS), max_size=12)


def moments(spans) -> set[int]:
    """Return every moment in the spans: the naive way."""
    return {moment for start, end in spans for moment in range(start, end)}


def is_in_order(spans) -> bool:
    bounds = [bound for span in spans for bound in span]
    return all(one < two for one, two in itertools.pairwise(bounds))


@given(ANY, ANY)
def test_union(first, second) -> None:
    got = union(first, second)
    assert moments(got) == moments(first) | moments(second)
    assert is_in_order(got)
    assert length(got) == len(moments(got))


@given(ANY, ANY)
def test_intersection(first, second) -> None:
    got = intersection(union(first), union(second))
    assert moments(got) == moments(first) & moments(second)
    assert is_in_order(got)


@given(ANY, ANY)
def test_subtraction(first, second) -> None:
    got = subtracted(union(first), union(second))
    assert moments(got) == moments(first) - moments(second)
    assert is_in_order(got)


@given(ANY, MOMENTS, MOMENTS)
def test_clipping(spans, start, end) -> None:
    if start > end:
        start, end = end, start
    got = clipped(union(spans), start, end)
    assert moments(got) == moments(spans) & set(range(start, end))
    assert is_in_order(got)


@pytest.mark.parametrize(
    ("given_spans", "expected"),
    [
        ([], []),
        ([(3, 3)], []),
        ([(5, 9), (1, 4)], [(1, 4), (5, 9)]),
        ([(1, 4), (4, 9)], [(1, 9)]),
        ([(1, 9), (2, 3), (8, 12)], [(1, 12)]),
    ],
)
def test_union_by_hand(given_spans, expected) -> None:
    assert union(given_spans) == expected
