"""The report as one HTML file that needs nothing else: no server, no address, no font."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Union

import msgspec

from teho.model.finding import Finding
from teho.model.missing import Missing
from teho.show.cells import (
    SEVERITY_WORDS,
    bands,
    cell_text,
    column_text,
    explanations,
    heading_unit,
    is_number,
    is_numeric,
    plain,
    quantity,
    severity_of,
    threshold_text,
    without_shared,
)
from teho.show.view import Cell, Column, Fact, Plot, PlotSeries, Table, View

__all__ = ["render_html"]

_GROUPS = ("GPU", "CPU", "Memory", "I/O and network")
_COMMAND = re.compile(r"`([^`]+)`")
_THINNED_ROWS = 24
_THINNED_SERIES = 8
_DIGITS = 4
"""Significant digits of a plotted point, counted from the largest of its plot."""

Value = Union[float, None]


def render_html(view: View) -> str:
    """Render a report as one self-contained page.

    Nothing is fetched, and a content security policy names the only two scripts
    that may run by their hashes. Without JavaScript the plots are tables.
    """
    title = f"{_text(view.name or view.run_id)} · Teho"
    sections = [
        *_section("Findings", "findings", _findings(view.findings)),
        *_section("What it used", "used", _tables(view.tables)),
        *_section("Over time", "plots", _plots(view.plots)),
        *_section("Notes on the recording", "notes", _list(view.notes)),
        *_section(
            "Not judged",
            "abstentions",
            _list(f"{item.kind}: {item.lacked}" for item in view.abstentions),
        ),
    ]
    scripts = (_asset("vendor/uPlot.iife.min.js"), _asset("templates/report.js"))
    style = _asset("vendor/uPlot.min.css") + _asset("templates/report.css")
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{_header(view)}
<main>
{"".join(sections)}
</main>
<footer>Teho {_text(view.teho_version)} · run <code>{_text(view.run_id)}</code></footer>
<script type="application/json" id="data">{_plot_data(view.plots)}</script>
<!-- uPlot, which draws the plots:
{_asset("vendor/LICENSE.uPlot")} -->
<script>{scripts[0]}</script>
<script>{scripts[1]}</script>
</body>
</html>
"""


@cache
def _asset(path: str) -> str:
    text = files("teho.show").joinpath(path).read_text(encoding="utf-8")
    # uPlot's first line is a link to its site; the page keeps the licence instead.
    return re.sub(r"\A/\*! https?://[^\n]*\*/\n", "", text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    return escape(plain(text))


def _section(title: str, key: str, inner: str) -> list[str]:
    if not inner:
        return []
    return [f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{inner}</section>\n']


def _header(view: View) -> str:
    name = f"<b>{_text(view.name)}</b> · " if view.name else ""
    facts = "".join(_fact(fact) for fact in view.facts if fact.value is not None)
    return f"""<header class="{view.verdict_severity}">
<p class="of">{name}{_text(view.run_id)} · {_text(view.state)}</p>
<p class="mark">{SEVERITY_WORDS[view.verdict_severity]}</p>
<h1>{_text(view.verdict)}</h1>
<p class="command"><code>{_text(view.command)}</code></p>
{f'<dl class="facts">{facts}</dl>' if facts else ""}
</header>"""


def _fact(fact: Fact) -> str:
    value = _text(cell_text(fact.value, fact.unit))
    words = "" if is_number(fact.value) else ' class="words"'
    note = f"<small>{_text(fact.note)}</small>" if fact.note else ""
    if isinstance(fact.value, Missing):
        value = f'<span class="missing">{value}</span>'
        note += f"<small>{_text(fact.value.detail)}</small>" if fact.value.detail else ""
    return f"<div><dt>{_text(fact.label)}</dt><dd{words}>{value}{note}</dd></div>"


def _findings(findings: Sequence[Finding]) -> str:
    cards = "".join(_card(finding) for finding in findings)
    return f'<ul class="cards">\n{cards}</ul>\n' if cards else ""


def _card(finding: Finding) -> str:
    severity = severity_of(finding.severity)
    figures = "".join(
        f"<div><dt>{_text(item.label)}</dt><dd>{_text(cell_text(item.value, item.unit))}</dd></div>"
        for item in finding.evidence
    )
    limits = "".join(
        f"<li>threshold {_text(threshold_text(limit))} · {_text(limit.source)}</li>"
        for limit in finding.thresholds
    )
    return f"""<li class="card {severity}">
<p class="mark">{SEVERITY_WORDS[severity]}</p>
<h3>{_text(finding.sentence)}</h3>
{f'<dl class="figures">{figures}</dl>' if figures else ""}
{f'<ul class="limits">{limits}</ul>' if limits else ""}
{_action(finding.action)}
</li>
"""


def _action(action: str) -> str:
    """Write what to do: prose, and each command on a line of its own, to be copied."""
    prose, *rest = _COMMAND.split(action)
    parts = [f'<p class="action">{_text(prose)}</p>'] if prose.strip() else []
    for command, after in zip(rest[::2], rest[1::2], strict=True):
        parts.append(
            f'<div class="copyable"><code tabindex="0">{_text(command)}</code>'
            '<button type="button" class="copy">copy</button></div>'
        )
        # The line's end takes the place of the comma or the full stop behind the command.
        prose = after.lstrip(" .,;:")
        parts.extend([f'<p class="action more">{_text(prose)}</p>'] if prose else [])
    return "".join(parts)


def _list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)
    return f'<ul class="listed">{items}</ul>\n' if items else ""


def _tables(tables: Sequence[Table]) -> str:
    inner = "".join(_table(table) for table in tables if table.rows)
    return f'<div class="tables">{inner}</div>\n' if inner else ""


def _table(table: Table) -> str:
    shared, columns = without_shared(table)
    numeric = {column.key: is_numeric(column, table.rows) for column in columns}
    rows = "".join(
        "<tr>"
        + "".join(
            _cell(row.get(column.key), column, numeric=numeric[column.key], heads=position == 0)
            for position, column in enumerate(columns)
        )
        + "</tr>\n"
        for row in table.rows
    )
    below = [*([table.note] if table.note else []), *explanations(table)]
    notes = "".join(f"<li>{_text(sentence)}</li>" for sentence in below)
    head = _table_head(columns, numeric)
    return f"""<div class="table">
<h3>{_text(table.title)} <small>{escape(" · ".join(shared))}</small></h3>
{_scrolling(table.title, f"<thead>{head}</thead><tbody>{rows}</tbody>")}
{f'<ul class="below">{notes}</ul>' if notes else ""}
</div>
"""


def _scrolling(label: str, inner: str) -> str:
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{_text(label)}">'
        f"<table>{inner}</table></div>"
    )


def _table_head(columns: tuple[Column, ...], numeric: dict[str, bool]) -> str:
    """Write the headings: those of the bands above, a column's own unit behind its name."""
    upper, lower = [], []
    for band, members in bands(columns):
        units = {heading_unit(column) for column in members}
        shared = units.pop() if band and len(units) == 1 else ""
        heading = f"{band}, {shared}" if shared else band
        upper.append(
            f'<th scope="colgroup" colspan="{len(members)}"><span>{_text(heading)}</span></th>'
            if band
            else "<td></td>"
        )
        for column in members:
            unit = "" if shared else heading_unit(column)
            label = f"{column.label}, {unit}" if unit else column.label
            side = ' class="n"' if numeric[column.key] else ""
            lower.append(f'<th scope="col"{side}>{_text(label)}</th>')
    first = f"<tr>{''.join(upper)}</tr>" if any("<th" in cell for cell in upper) else ""
    return f"{first}<tr>{''.join(lower)}</tr>"


def _cell(cell: Cell, column: Column, *, numeric: bool, heads: bool) -> str:
    classes = ["n"] if numeric else []
    if cell is None or isinstance(cell, Missing):
        classes.append("missing")
    start = 'th scope="row"' if heads else "td"
    named = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{start}{named}>{_text(column_text(cell, column))}</{start[:2]}>"


def _plots(plots: Sequence[Plot]) -> str:
    if not plots:
        return ""
    hint = (
        '<p class="hint">Drag to zoom, double click to see it all again; '
        "click a name to hide its line.</p>"
        "<noscript><p>Without JavaScript the plots are not drawn; "
        "their numbers stand under each title.</p></noscript>\n"
    )
    groups = []
    for group in _GROUPS:
        figures = [_figure(i, plot) for i, plot in enumerate(plots) if plot.group == group]
        if figures:
            groups.append(
                f'<h3 class="group">{group}</h3>\n<div class="plots">{"".join(figures)}</div>\n'
            )
    return hint + "".join(groups)


def _figure(number: int, plot: Plot) -> str:
    title = _text(_capital(plot.title))
    return f"""<figure>
<figcaption><div class="title"><h4>{title}</h4></div>
<p>{_text(_capital(plot.meaning))}</p></figcaption>
<div class="canvas" id="plot{number}" role="img" \
aria-label="{title} over time, a line per device; the numbers follow below"></div>
<details><summary>Show the numbers</summary>{_numbers(plot)}</details>
</figure>
"""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _numbers(plot: Plot) -> str:
    rows = "".join(_extent(series, plot.unit) for series in plot.series)
    heads = "".join(f'<th scope="col" class="n">{word}</th>' for word in ("mean", "least", "most"))
    table = _scrolling(
        f"{plot.title}, each line",
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody>",
    )
    if len(plot.series) > _THINNED_SERIES:
        return table
    return table + _thinned(plot)


def _extent(series: PlotSeries, unit: str) -> str:
    known = [value for value in series.values if value is not None and math.isfinite(value)]
    if known:
        figures = (math.fsum(known) / len(known), min(known), max(known))
        cells = "".join(f'<td class="n">{_text(quantity(value, unit))}</td>' for value in figures)
    else:
        cells = '<td class="n missing" colspan="3">not recorded</td>'
    return f'<tr><th scope="row">{_text(series.label)}</th>{cells}</tr>'


def _thinned(plot: Plot) -> str:
    """Show every so many-th moment, as it was recorded."""
    step = max(1, math.ceil(len(plot.elapsed_s) / _THINNED_ROWS))
    heads = "".join(f'<th scope="col" class="n">{_text(line.label)}</th>' for line in plot.series)
    rows = "".join(
        f'<tr><th scope="row">{quantity(plot.elapsed_s[i], "s")}</th>'
        + "".join(_point(line.values[i], plot.unit) for line in plot.series)
        + "</tr>"
        for i in range(0, len(plot.elapsed_s), step)
    )
    return _scrolling(
        f"{plot.title} over time",
        f'<thead><tr><th scope="col">after</th>{heads}</tr></thead><tbody>{rows}</tbody>',
    )


def _point(value: Value, unit: str) -> str:
    if value is None or not math.isfinite(value):
        return '<td class="n missing">not recorded</td>'
    return f'<td class="n">{_text(quantity(value, unit))}</td>'


def _plot_data(plots: Iterable[Plot]) -> str:
    data = {"plots": [_plot_entry(number, plot) for number, plot in enumerate(plots)]}
    # In a script element only `<` can end the data; JSON has another way to write it.
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def _plot_entry(number: int, plot: Plot) -> dict[str, object]:
    return {
        "id": f"plot{number}",
        "unit": plain(plot.unit),
        "elapsed_s": plot.elapsed_s,
        "series": [
            {"label": plain(series.label), "values": values}
            for series, values in zip(plot.series, _rounded(plot), strict=True)
        ],
    }


def _rounded(plot: Plot) -> Iterator[list[Value]]:
    """Round the points to what a plot can show, which halves the page."""
    largest = max(
        (abs(v) for s in plot.series for v in s.values if v is not None and math.isfinite(v)),
        default=0.0,
    )
    digits = _DIGITS - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
    for series in plot.series:
        yield [None if value is None else round(value, digits) for value in series.values]
