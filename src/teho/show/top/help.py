"""The help of `teho top`: its keys, and what each value means."""

from __future__ import annotations

from rich.text import Text

from teho.model.metric import METRICS
from teho.show.text.flow import flow, words
from teho.show.top.lines import Row, View

__all__ = ["help_view"]

_KEYS = (
    ("↑ ↓, j k", "Move."),
    ("Enter, →", "Open a node, or a GPU or a process of the node."),
    ("Esc, ←", "Go back."),
    ("s", "Sort the nodes: the worst first, or by name."),
    ("f", "Freeze the values, or go on."),
    ("q", "Quit. The run goes on."),
)
_CELLS = (
    ("0 to 9", "A GPU that is busy for 0 to 9 tens of a percent of the time: 9 is 90 % or more."),
    ("·", "This value cannot be read; open the GPU to see why."),
    ("AGE", "Time since the sample of the node."),
)
_LABEL = 29
"""Width of the column with the keys and the names."""


def help_view(width: int) -> View:
    """Return the lines of the help."""
    rows: list[Row] = []
    for name, texts in (
        ("Keys", _KEYS),
        ("Cells", _CELLS),
        ("Values", [(metric.label, f"{metric.meaning}.") for metric in METRICS]),
    ):
        rows.append(Row(Text(name, "bold")))
        for key, text in texts:
            sentence = text[:1].upper() + text[1:]
            label = key[:1].upper() + key[1:] if name == "Values" else key
            lead = Text(f"{label:<{_LABEL}}" if width >= 2 * _LABEL else f"{label}: ")
            hang = _LABEL if width >= 2 * _LABEL else 2
            rows += [Row(line) for line in flow(words(sentence), width, lead, hang=hang)]
        rows.append(Row(Text()))
    return View(Text("Help", "bold"), rows).cut(width)
