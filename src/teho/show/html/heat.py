"""The heat map of the page: one row per GPU or node, time from left to right, as plain SVG.

The class of a cell sets its colour, which follows the page (light or dark). Values that were not
recorded are not drawn: the hatched background is visible there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from teho.explain.wording import capital
from teho.model.document import Plot
from teho.show.cells import plain, quantity
from teho.show.html.markup import drawn_text, prose, text
from teho.show.html.plots import numbers_of
from teho.units import counted

__all__ = ["heat_section"]

_LEVELS = 10
_COLUMN = 100
"""Width of a column in units of the drawing; the last one can be narrower."""
_TALLEST_PX, _LOWEST_PX, _WHOLE_PX = 18.0, 1.5, 560.0
"""Largest and smallest height of a row, and the height of the whole map."""
_BORDERED_PX = 4.0
"""Least height of a row for lines between nodes, which would hide lower rows."""
_LINE_PX = 12.0
"""Least distance between two names."""
_NAME_LETTERS = 16
_LETTER_PX = 6.6


def heat_section(plot: Plot | None) -> str:
    """Write the heat map with its scale and a table of its numbers; empty without a plot."""
    if plot is None:
        return ""
    rows = len(plot.series)
    row_px = max(_LOWEST_PX, min(_TALLEST_PX, _WHOLE_PX / rows))
    height = f"{rows * row_px:g}"
    name = f"{plot.title}: {counted(rows, 'row')}, with time from left to right"
    ends = _edges(plot)
    return f"""<figure class="heat">
<figcaption><div class="title"><p>{prose(capital(plot.meaning))}</p></div></figcaption>
{_scale(plot)}
<div class="map">
{_names(plot, row_px, height)}
<svg class="cells" id="heat" height="{height}" viewBox="0 0 {ends[-1]} {rows}" \
preserveAspectRatio="none" role="img" aria-label="{text(name)}; the numbers follow below">
{_cells(plot, ends)}
{_borders(plot, ends[-1]) if row_px >= _BORDERED_PX else ""}
</svg>
{_axis(plot)}
</div>
<details><summary>Show the numbers</summary>{numbers_of(plot)}</details>
</figure>
"""


def _columns_s(plot: Plot) -> tuple[float, float]:
    """Return the duration of a column, and of the last one, which can be shorter."""
    column_s = max(2 * plot.elapsed_s[0], 1e-9)
    before = len(plot.elapsed_s) - 1
    return column_s, 2 * (plot.elapsed_s[-1] - column_s * before) if before else column_s


def _edges(plot: Plot) -> list[int]:
    """Return the left edges of the columns and the right edge of the last, in drawing units."""
    column_s, last_s = _columns_s(plot)
    begins = [_COLUMN * column for column in range(len(plot.elapsed_s))]
    return [*begins, begins[-1] + max(1, round(_COLUMN * last_s / column_s))]


def _cells(plot: Plot, ends: Sequence[int]) -> str:
    """Draw each level of the scale as one path; neighbours of a level are one rectangle."""
    paths: dict[int, list[str]] = {}
    for row, line in enumerate(plot.series):
        column = 0
        for level, members in groupby(map(_level, line.values)):
            begin, column = column, column + sum(1 for _ in members)
            if level is not None:
                left, right = ends[begin], ends[column]
                paths.setdefault(level, []).append(f"M{left} {row}H{right}v1H{left}z")
    return "\n".join(
        f'<path class="h{level}" d="{"".join(parts)}"/>' for level, parts in sorted(paths.items())
    )


def _level(value: float | None) -> int | None:
    if value is None:
        return None
    return max(0, min(_LEVELS - 1, int(value * _LEVELS / 100)))


def _borders(plot: Plot, width: int) -> str:
    rows = [rows[0] for _, rows in _nodes(plot)][1:]
    lines = "".join(f"M0 {row}H{width}" for row in rows)
    return f'<path class="borders" d="{lines}"/>' if lines else ""


def _nodes(plot: Plot) -> Iterator[tuple[str, list[int]]]:
    """Yield the name of each node (empty if there is only one) and the rows of its GPUs."""
    numbered = enumerate(_node_of(line.label) for line in plot.series)
    for node, rows in groupby(numbered, key=lambda pair: pair[1]):
        yield node, [row for row, _ in rows]


def _node_of(label: str) -> str:
    """Return `g1` of `g1 GPU 3`, and of `g1`, if a row is a whole node; empty for `GPU 3`."""
    node, gpu, _ = label.rpartition("GPU ")
    return node.strip() if gpu else label


def _names(plot: Plot, row_px: float, height: str) -> str:
    """Write the names of nodes and GPUs next to the rows, if there is room."""
    nodes = list(_nodes(plot))
    letters = max(len(_cropped(node)) for node, _ in nodes)
    width = math.ceil(letters * _LETTER_PX) + (26 if row_px >= _LINE_PX else 8)
    words: list[str] = []
    last_px = -_LINE_PX
    for node, rows in nodes:
        # If every row has room for a name, the name of the node is next to its first row.
        middle = rows[0] + 0.5 if row_px >= _LINE_PX else (rows[0] + rows[-1] + 1) / 2
        # A name is higher than a low row, so the first one would be cut off at the top.
        middle_px = max(middle * row_px, _LINE_PX / 2)
        if node and middle_px - last_px >= _LINE_PX:
            last_px = middle_px
            words.append(drawn_text(_cropped(node), "0", last_px, "start"))
    every = max(1, math.ceil(_LINE_PX / row_px))
    if row_px >= _LINE_PX or len(nodes) == 1:
        for row, line in enumerate(plot.series):
            if row % every == 0:
                gpu = line.label.rpartition(" ")[2]
                middle_px = max((row + 0.5) * row_px, _LINE_PX / 2)
                words.append(drawn_text(gpu, f"{width - 6}", middle_px, "end"))
    return (
        f'<svg class="names" width="{width}" height="{height}" aria-hidden="true">'
        f"{''.join(words)}</svg>"
    )


def _cropped(name: str) -> str:
    shown = plain(name)
    return shown if len(shown) <= _NAME_LETTERS else f"{shown[: _NAME_LETTERS - 1]}…"


def _axis(plot: Plot) -> str:
    whole_s = plot.elapsed_s[-1] + _columns_s(plot)[1] / 2
    marks = ((0, "start"), (50, "middle"), (100, "end"))
    words = "".join(
        f'<text x="{percent}%" y="14" text-anchor="{anchor}">'
        f"{text(quantity(whole_s * percent / 100, 's')) if percent else '0'}</text>"
        for percent, anchor in marks
    )
    return f'<svg class="axis" height="18" aria-hidden="true">{words}</svg>'


def _scale(plot: Plot) -> str:
    boxes = "".join(
        f'<rect class="h{level}" x="{14 * level}" width="14" height="12"/>'
        for level in range(_LEVELS)
    )
    unseen = ""
    if any(None in line.values for line in plot.series):
        unseen = '<span><span class="unseen"></span>not recorded</span>'
    return (
        f'<p class="scale">idle<svg width="{14 * _LEVELS}" height="12" aria-hidden="true">{boxes}'
        f"</svg>100 % busy{unseen}</p>"
    )
