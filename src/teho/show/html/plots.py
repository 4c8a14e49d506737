"""The plots of the page: figures, tables of their numbers, and their points as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Union, cast

import msgspec

from teho.explain.wording import capital
from teho.model.document import Plot
from teho.show.cells import plain, quantity
from teho.show.html.markup import grid, prose, row, text

__all__ = ["numbers_of", "plot_data", "plots_section"]

_GROUPS = ("GPU", "CPU", "Memory", "I/O and network")
_THINNED_ROWS = 24
_THINNED_SERIES = 8
_MOST_EXTENTS = 32
"""Number of lines in a table of extents; the JSON has all lines."""

Value = Union[float, None]


def plots_section(plots: Sequence[Plot]) -> str:
    """Write a figure for each plot, by groups; a script draws the plots into them."""
    if not plots:
        return ""
    hint = (
        '<p class="hint">Drag to zoom, double-click to zoom out, '
        "click a name to hide its line.</p>"
        # Not a noscript element: a browser can allow scripts, but forbid the scripts of this page.
        '<p class="unscripted">Without JavaScript the plots are not drawn. '
        "The numbers of each plot are below its title.</p>\n"
    )
    groups = []
    for group in _GROUPS:
        own = [(number, plot) for number, plot in enumerate(plots) if plot.group == group]
        figures = "".join(_figure(*pair) for pair in own if not _is_zero(pair[1]))
        zeros = ", ".join(capital(plot.title) for _, plot in own if _is_zero(plot))
        if own:
            groups.append(
                f'<h3 class="group">{group}</h3>\n'
                + (f'<div class="plots">{figures}</div>\n' if figures else "")
                + (f'<p class="zeros">Always 0: {text(zeros)}.</p>\n' if zeros else "")
            )
    return hint + "".join(groups)


def _is_zero(plot: Plot) -> bool:
    """Return whether all that was recorded is 0: a sentence says it, without a drawing."""
    known = [value for series in plot.series for value in _known(series.values)]
    return bool(known) and not any(known)


def plot_data(plots: Iterable[Plot], heat_map: Plot | None) -> str:
    """Write the points of all plots and of the heat map as JSON for a script element.

    All points are finite.
    """
    data = {
        "plots": [
            _entry(f"plot{number}", plot) for number, plot in enumerate(plots) if not _is_zero(plot)
        ],
        "heat": None if heat_map is None else _entry("heat", heat_map),
    }
    # In a script element, `<` could end the data; JSON can write it in another way.
    return msgspec.json.encode(data).replace(b"<", b"\\u003c").decode()


def _entry(place: str, plot: Plot) -> dict[str, object]:
    return {
        "id": place,
        "unit": plain(plot.unit),
        "elapsed_s": plot.elapsed_s,
        "series": [
            {"label": plain(series.label), "values": series.values} for series in plot.series
        ],
    }


def _known(values: list[Value]) -> list[float]:
    """Return the values without gaps; most lines have none."""
    if None not in values:
        return cast("list[float]", values)
    return [value for value in values if value is not None]


def _figure(number: int, plot: Plot) -> str:
    title = text(capital(plot.title))
    return f"""<figure>
<figcaption><div class="title"><h4>{title}</h4></div>
<p>{prose(capital(plot.meaning))}</p></figcaption>
<div class="canvas" id="plot{number}" role="img" \
aria-label="{title} over time, a line per device; the numbers follow below"></div>
<details><summary>Show the numbers</summary>{numbers_of(plot)}</details>
</figure>
"""


def numbers_of(plot: Plot) -> str:
    """Write the numbers of a plot as tables."""
    table = grid(f"{plot.title}, each line", ("mean", "least", "most"), _extents(plot))
    return table + (_thinned(plot) if len(plot.series) <= _THINNED_SERIES else "")


def _extents(plot: Plot) -> Iterator[str]:
    """Yield a row for each line; if there are many, for the lowest and the highest means."""
    lines = plot.series
    if len(lines) > _MOST_EXTENTS:
        means = [(fmean(own), series) for series in lines if (own := _known(series.values))]
        lines = tuple(series for _, series in sorted(means, key=itemgetter(0)))
    half = _MOST_EXTENTS // 2
    between = len(lines) - 2 * half
    for place, series in enumerate(lines):
        if place < half or place >= half + between:
            known = _known(series.values)
            ends = (fmean(known), min(known), max(known)) if known else [None] * 3
            yield row(series.label, (_point(value, plot.unit) for value in ends))
        elif place == half:
            yield f'<tr><td class="missing" colspan="4">{between} more rows in between</td></tr>'


def _thinned(plot: Plot) -> str:
    """Write a table of some moments, at equal distances."""
    step = max(1, math.ceil(len(plot.elapsed_s) / _THINNED_ROWS))
    rows = (
        row(
            quantity(plot.elapsed_s[i], "s"),
            (_point(line.values[i], plot.unit) for line in plot.series),
        )
        for i in range(0, len(plot.elapsed_s), step)
    )
    labels = [line.label for line in plot.series]
    return grid(f"{plot.title} over time", labels, rows, corner="after")


def _point(value: Value, unit: str) -> str | None:
    return None if value is None else quantity(value, unit)
