"""The colours of the screen can be read on light and on dark terminals."""

from __future__ import annotations

import re

import pytest
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from teho.show.top.gpu import gpu_view
from teho.show.top.head import head
from teho.show.top.job import JobLines
from teho.show.top.node import node_view
from teho.show.top.process import process_view
from teho.show.top.rows import bar, cell
from top.frames import WATCHED, StillSource, detailed, frame, with_processes

WHITE, BLACK = (255, 255, 255), (0, 0, 0)
Rgb = tuple[int, int, int]
GRAPHIC, LARGE = 3.0, 3.0
"""Least contrast of graphics, and of bold text (WCAG 2.1, 1.4.3 and 1.4.11)."""


def luminance(colour: Rgb) -> float:
    """Return the relative luminance of WCAG 2.1."""
    parts = [part / 255 for part in colour]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Rgb, other: Rgb) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rgb(colour: Color) -> Rgb:
    red, green, blue = colour.get_truecolor()
    return red, green, blue


def test_the_contrast_is_that_of_the_standard() -> None:
    assert contrast(WHITE, BLACK) == pytest.approx(21.0)
    assert contrast((118, 118, 118), WHITE) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("tens", range(10))
def test_the_digit_of_a_cell_can_be_read(tens: int) -> None:
    text, style = cell(10.0 * tens)
    assert text == str(tens)
    parsed = Style.parse(style)
    assert parsed.bold
    assert parsed.color is not None
    assert parsed.bgcolor is not None
    assert contrast(rgb(parsed.color), rgb(parsed.bgcolor)) >= LARGE


def styles_of(lines: list[Text]) -> set[str]:
    return {str(span.style) for line in lines for span in line.spans} | {
        str(line.style) for line in lines
    }


def test_every_colour_can_be_seen_on_white_and_on_black() -> None:
    shown = frame({"n1": [97.0, 3.0, 50.0, None], "n2": [1.0] * 4}, ages_s={"n2": 60.0})
    shown = with_processes(detailed(shown))._replace(alert="GPU 3 on n1 has been idle.")
    curves = StillSource(shown).curves("n1", 0)
    views = [
        JobLines().view(shown.nodes, 120),
        node_view(shown, "n1", 120),
        node_view(shown, "n2", 120),
        gpu_view(shown, "n1", 0, curves, 120, 40),
        process_view(shown, "n1", 11, WATCHED, 120),
    ]
    lines = [line for view in views for line in (view.title, *(row.line for row in view.rows))]
    lines += [*head(shown, 120), *(bar(share / 10, 10) for share in range(11))]
    numbered = {style for style in styles_of(lines) if "color(" in style and " on " not in style}
    assert len(numbered) > 10
    for style in numbered:
        parsed = Style.parse(style)
        assert parsed.color is not None
        for ground in (WHITE, BLACK):
            assert contrast(rgb(parsed.color), ground) >= GRAPHIC, (style, ground)
    # All others are the terminal's own colours, which its user has chosen.
    others = {style for style in styles_of(lines) if style and "color(" not in style}
    named = {word for style in others for word in style.split()} - {"bold", "dim"}
    assert named <= {"red", "yellow", "cyan", "green"}


def test_without_colours_each_line_says_the_same() -> None:
    shown = frame({"n1": [97.0, 3.0, 50.0, None]})
    console = Console(no_color=True, width=120, force_terminal=True)
    with console.capture() as capture:
        for row in JobLines().view(shown.nodes, 117).rows:
            console.print(row.line)
    text = re.sub(r"\x1b\[[0-9;]*m", "", capture.get())
    assert "9 0 5 ·" in text
    assert not re.search(r"\x1b\[[0-9;]*(3|4)[0-9]", capture.get())
