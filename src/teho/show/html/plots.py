"""The plots of the page: figures, tables of their numbers, and their points as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Union, cast

import msgspec

from teho.explain.wording import capital
from teho.model.document import Plot, PlotSeries
from teho.model.finding import Finding
from teho.show.cells import plain, quantity
from teho.show.html.markup import grid, prose, row, text

__all__ = ["PlotLinks", "numbers_of", "plot_data", "plots_section"]

_GROUPS = ("GPU", "CPU", "Memory", "I/O and network")
_THINNED_ROWS = 24
_THINNED_SERIES = 8
_MOST_EXTENTS = 32
"""Number of lines in a table of extents; the JSON has all lines."""

Value = Union[float, None]


class PlotLinks:
    """The addresses of the plots within the page.

    Args:
        plots: in the order of the page.
    """

    def __init__(self, plots: Sequence[Plot]) -> None:
        self._places = {plot.key: f"plot{number}" for number, plot in enumerate(plots)}
        # The longest title first: `GPU memory used` before `GPU memory`.
        titles = sorted(plots, key=lambda plot: len(plot.title), reverse=True)
        self._titles = [(capital(plot.title), self._places[plot.key]) for plot in titles]

    def of_metric(self, metric: str) -> str:
        """Return the id of the plot of a metric; empty if there is none."""
        return self._places.get(metric, "")

    def of_label(self, label: str) -> str:
        """Return the id of the plot that a figure's label begins with; empty if there is none."""
        begins = (place for title, place in self._titles if capital(label).startswith(title))
        return next(begins, "")

    def moments(self, finding: Finding) -> dict[str, object] | None:
        """Return the times of a finding for the script; None if no plot can show them."""
        moments = finding.moments
        place = self.of_metric(moments.metric) if moments else ""
        if moments is None or not place:
            return None
        return {"plot": place, "lines": moments.lines, "spans": moments.spans_s}


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
        # A link to a plot that is not drawn leads to its name in this sentence.
        zeros = ", ".join(
            f'<span id="plot{number}">{text(capital(plot.title))}</span>'
            for number, plot in own
            if _is_zero(plot)
        )
        if own:
            groups.append(
                f'<h3 class="group">{group}</h3>\n'
                + (f'<div class="plots">{figures}</div>\n' if figures else "")
                + (f'<p class="zeros">Always 0: {zeros}.</p>\n' if zeros else "")
            )
    return hint + "".join(groups)


def _is_zero(plot: Plot) -> bool:
    """Return whether all that was recorded is 0: a sentence says it, without a drawing."""
    known = (_known(series.values) for series in plot.series)
    # It ends at the first line with another value: a large run has a million points.
    amounts = (any(values) for values in known if values)
    return next(amounts, True) is False and not any(amounts)


def plot_data(plots: Sequence[Plot], heat_map: Plot | None, findings: Sequence[Finding]) -> str:
    """Write the points of all plots and of the heat map as JSON for a script element.

    All points are finite. The times of the findings are in the order of the findings.
    """
    links = PlotLinks(plots)
    data = {
        "plots": [
            _entry(f"plot{number}", plot) for number, plot in enumerate(plots) if not _is_zero(plot)
        ],
        "moments": [links.moments(finding) for finding in findings],
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
    return f"""<figure id="plot{number}">
<figcaption><div class="title"><h4>{title}</h4></div>
<p>{prose(capital(plot.meaning))}</p></figcaption>
<div class="canvas" role="img" \
aria-label="{title} over time; the numbers follow below"></div>
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
        means = [(mean, line) for line in lines if (mean := _mean_of(line)) is not None]
        lines = tuple(line for _, line in sorted(means, key=itemgetter(0)))
    half = _MOST_EXTENTS // 2
    between = len(lines) - 2 * half
    for place, series in enumerate(lines):
        if place < half or place >= half + between:
            ends = _ends(series) or (None, None, None)
            yield row(series.label, (_point(value, plot.unit) for value in ends))
        elif place == half:
            yield f'<tr><td class="missing" colspan="4">{between} more rows in between</td></tr>'


def _mean_of(line: PlotSeries) -> float | None:
    """Return the mean of a line, of all samples if it is known; None without values."""
    points = _known(line.values)
    if not points:
        return None
    return fmean(points) if line.mean is None else line.mean


def _ends(line: PlotSeries) -> tuple[float, float, float] | None:
    """Return the mean, the smallest and the largest value of a line; None without values.

    If not all samples are known, those of the points are taken.
    """
    points = _known(line.values)
    if not points:
        return None
    return (
        fmean(points) if line.mean is None else line.mean,
        min(points) if line.least is None else line.least,
        max(points) if line.most is None else line.most,
    )


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
