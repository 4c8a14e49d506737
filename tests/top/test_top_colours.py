"""The colours of the screen can be read on light and on dark terminals."""

from __future__ import annotations

import re

import msgspec
import pytest
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from teho.show.cells import MARKS
from teho.show.top.gpu import gpu_view
from teho.show.top.head import head, run_facts
from teho.show.top.help import help_view
from teho.show.top.job import JobLines
from teho.show.top.node import node_view
from teho.show.top.process import process_view
from teho.show.top.rows import bar, cell
from top.frames import REPORT, WATCHED, StillSource, detailed, frame, with_processes

WHITE, BLACK = (255, 255, 255), (0, 0, 0)
Rgb = tuple[int, int, int]
GRAPHIC, TEXT = 3.0, 4.5
"""Least contrast of graphics, and of text (WCAG 2.1, 1.4.11 and 1.4.3). The bold text of a terminal
is smaller than the large text for which 3.0 is enough."""
DRAWN = re.compile(rf"[\s━─⠀-⣿]*|[{re.escape(''.join(MARKS.values()))}] ?")
"""Bars, curves, and the sign of a verdict."""


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
    assert contrast(rgb(parsed.color), rgb(parsed.bgcolor)) >= TEXT


def pieces_of(lines: list[Text]) -> set[tuple[str, str]]:
    """Return each style of the lines, with the text that has this style."""
    spans = {
        (str(span.style), line.plain[span.start : span.end])
        for line in lines
        for span in line.spans
    }
    return spans | {(str(line.style), line.plain) for line in lines}


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
    lines += [bar(share / 10, 10) for share in range(11)]
    for severity in MARKS.keys() - {"hint"}:
        report = msgspec.structs.replace(
            REPORT, verdict="No step for 10 min: `teho report x`.", verdict_severity=severity
        )
        lines += head(shown._replace(report=report), 120)
    lines += [row.line for row in help_view(120, (), run_facts(shown)).rows]
    pieces = {(style, text) for style, text in pieces_of(lines) if "color(" in style}
    assert len({style for style, _ in pieces}) > 18
    for style, text in pieces:
        parsed = Style.parse(style)
        assert parsed.color is not None
        least = GRAPHIC if DRAWN.fullmatch(text) else TEXT
        for ground in [rgb(parsed.bgcolor)] if parsed.bgcolor else (WHITE, BLACK):
            assert contrast(rgb(parsed.color), ground) >= least, (style, text, ground)
    # All other text has the terminal's own colour: a named colour may be as light as the ground.
    others = {style for style, _ in pieces_of(lines) if "color(" not in style}
    assert {word for style in others for word in style.split()} <= {"bold", "dim"}


def test_without_colours_each_line_says_the_same() -> None:
    shown = frame({"n1": [97.0, 3.0, 50.0, None]})
    console = Console(no_color=True, width=120, force_terminal=True)
    with console.capture() as capture:
        for row in JobLines().view(shown.nodes, 117).rows:
            console.print(row.line)
    text = re.sub(r"\x1b\[[0-9;]*m", "", capture.get())
    assert "9 0 5 ·" in text
    assert not re.search(r"\x1b\[[0-9;]*(3|4)[0-9]", capture.get())
