"""Running text: no line is longer than the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from teho.show.text.flow import flow, words


@given(
    st.integers(20, 80),
    st.text("ab", max_size=60),
    st.integers(0, 8),
    st.lists(st.text("xy", min_size=1, max_size=9), min_size=1, max_size=30),
)
def test_every_line_fits_and_every_word_is_there(
    width: int, lead: str, hang: int, said: list[str]
) -> None:
    lead = lead[: width - 8]
    lines = [line.plain for line in flow(words(" ".join(said)), width, Text(lead), hang=hang)]
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith(lead)
    assert " ".join([lines[0][len(lead) :], *lines[1:]]).split() == said


@pytest.mark.parametrize("lead", ["a lead that is longer than half of it ", "- "])
def test_lines_hang_below_their_mark(lead: str) -> None:
    lines = flow(words("one two three four five six seven eight"), 44, Text(lead), hang=2)
    assert all(line.plain.startswith("  ") for line in lines[1:])
