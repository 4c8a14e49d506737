"""Curves of braille characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from teho.show.top.braille import braille


def dots(lines: list[str]) -> list[int]:
    """Return how many dots each of the two columns of each cell has, from left to right."""
    return [
        sum(((ord(line[cell]) - 0x2800) & bits).bit_count() for line in lines)
        for cell in range(len(lines[0]))
        for bits in (0x47, 0xB8)
    ]


def test_a_rising_line() -> None:
    assert dots(braille([0, 25, 50, 75, 100], 4, 1, 0, 100)) == [0, 0, 0, 1, 1, 2, 3, 4]


def test_a_missing_value_is_no_dot_and_zero_is_one() -> None:
    assert dots(braille([None, 0.0], 1, 2, 0, 100)) == [0, 1]


values = st.lists(st.none() | st.floats(-1e6, 1e6), max_size=50)


@given(values, st.integers(1, 12), st.integers(1, 4))
def test_each_value_has_its_height(given: list[float | None], width: int, height: int) -> None:
    lines = braille(given, width, height, 0.0, 100.0)
    assert len(lines) == height
    assert all(len(line) == width for line in lines)
    shown = given[-2 * width :]
    expected = [0] * (2 * width - len(shown)) + [
        0 if value is None else max(1, min(4 * height, round(value / 100 * 4 * height)))
        for value in shown
    ]
    assert dots(lines) == expected
