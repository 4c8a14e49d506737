"""Rows of the screen of `teho top`, and the parts that its views share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rich.text import Text

from teho.model.live import NOT_RECORDED, NodeNow, Way
from teho.show.cells import quantity
from teho.show.text.flow import words

__all__ = [
    "DIM",
    "MARK_STYLES",
    "NEW_S",
    "WARNING",
    "WAYS",
    "Row",
    "View",
    "age",
    "bar",
    "cell",
    "cut",
    "percent",
    "uncoloured",
    "ways",
]

_COLORS = tuple(f"color({number})" for number in (160, 166, 130, 94, 100, 64, 28, 29, 30, 25))
"""From an idle GPU to a busy GPU. The digit in the cell says the same without colour. Colours of
the table of 256 need half as many bytes as any colour. A bar of each of them can be seen on white
and on black."""
_REST = "color(242)"
_WHITE, _BLACK = "color(231)", "color(16)"
_BRIGHT = frozenset({"color(166)", "color(100)", "color(64)", "color(30)"})
"""Colours on which only a black digit has enough contrast."""
_CELLS = tuple(
    (str(place), f"bold {_BLACK if color in _BRIGHT else _WHITE} on {color}")
    for place, color in enumerate(_COLORS)
)
DIM = "dim"
WARNING = "bold color(131)"
"""Text in this colour can be read on white and on black. The yellow of most terminals cannot be
read on white."""
MARK_STYLES = {
    "critical": "bold color(160)",
    "warning": WARNING,
    "remark": "bold color(30)",
    "good": "bold color(28)",
    "unknown": WARNING,
}
"""Severity of the verdict -> colour of its sign. The sentence has the terminal's own colour."""
NEW_S = 2.5
"""Samples come each second; the age of a sample that is not older is not shown, because it would
change the line at each tick."""
WAYS: Mapping[Way, str] = {
    "connection": "by connection",
    "file": "from files",
    "recording": "from the recording",
}
"""How samples come, in few words."""


class Row(NamedTuple):
    """One line of a list that can be chosen."""

    line: Text
    key: str = ""
    """What Enter opens; empty: the line cannot be chosen."""


class View(NamedTuple):
    """What is below the head."""

    title: Text
    rows: list[Row]

    def cut(self, width: int) -> View:
        """Return the view with lines of at most this many columns."""
        return View(
            cut(self.title, width), [Row(cut(row.line, width), row.key) for row in self.rows]
        )


def cut(line: Text, width: int) -> Text:
    """Cut a line to a number of columns, in place."""
    line.truncate(width, overflow="ellipsis")
    return line


def uncoloured(sentence: str) -> list[Text]:
    """Cut a sentence into words. Commands do not have the colour that they have in a report."""
    return [Text(word.plain) for word in words(sentence)]


def cell(share: float) -> tuple[str, str]:
    """Return the tens of a share in %, and the style of its colour."""
    place = min(9, max(0, int(share // 10)))
    return _CELLS[place]


def percent(value: float | None) -> str:
    """Return a share as text; a dash if it is missing."""
    return "–" if value is None else quantity(value, "%")


def bar(share: float | None, width: int) -> Text:
    """Return a bar; a missing value has a dash."""
    if share is None:
        return Text(f"{'–':<{width}}", DIM)
    filled = round(max(0.0, min(1.0, share)) * width)
    place = min(9, max(0, int(share * 10)))
    text = Text("━" * filled, _COLORS[place])
    # Not the same sign: without colour, the whole bar would seem full.
    text.append("─" * (width - filled), _REST)
    return text


def age(node: NodeNow) -> str:
    """Return how old the values of a node are, and how they came if not by a connection."""
    if node.age_s is None:
        return "no sample" if node.is_recorded else NOT_RECORDED
    if node.has_ended:
        near = node.age_s < NEW_S
        return "at the end of the run" if near else f"{node.age_s:.0f} s before the end of the run"
    source = f", {WAYS[node.way]}" if node.way and node.way != "connection" else ""
    return f"{node.age_s:.0f} s old{source}"


def ways(nodes: Iterable[NodeNow]) -> str:
    """Return how the values of some nodes came; empty without values, and after the end."""
    shown = (node for node in nodes if not node.is_silent and not node.has_ended)
    counts = Counter(node.way for node in shown if node.way)
    if len(counts) == 1:
        return f"values {WAYS[next(iter(counts))]}"
    found = [f"{count} {WAYS[way]}" for way in WAYS if (count := counts[way])]
    return f"values: {', '.join(found)}" if found else ""
