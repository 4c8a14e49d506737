"""The report as one HTML file that needs nothing else: no server, no address, no font."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from teho.model.finding import Finding
from teho.model.missing import Missing
from teho.show.cells import (
    SEVERITY_WORDS,
    bands,
    cell_text,
    column_text,
    evidence_of,
    explanations,
    heading_unit,
    is_number,
    is_numeric,
    not_judged,
    severity_of,
    threshold_text,
    without_shared,
    worst_first,
)
from teho.show.html_heat import heat_section
from teho.show.html_plots import plot_data, plots_section
from teho.show.html_roofline import rooflines_section
from teho.show.markup import prose, scrolling, text
from teho.show.view import Cell, Column, Fact, Table, View

__all__ = ["html_table", "render_html"]

_COMMAND = re.compile(r"`([^`]+)`")


def render_html(view: View) -> str:
    """Render a report as one self-contained page.

    Nothing is fetched, and a content security policy names the only two scripts
    that may run by their hashes. Without JavaScript the plots are tables.
    """
    title = f"{text(view.name or view.run_id)} · Teho"
    sections = [
        *_section("Findings", "findings", _findings(view.findings)),
        *_section("Every GPU over time", "heats", heat_section(view.heat_map)),
        *_section("What it used", "used", _tables(view.tables)),
        *_section("Roofline", "rooflines", rooflines_section(view.rooflines)),
        *_section("Over time", "plots", plots_section(view.plots)),
        *_section("Trouble with the recording", "troubles", _list(view.troubles)),
        *_section("Notes on the recording", "notes", _list(view.notes)),
        *_section("Not judged", "abstentions", _list(not_judged(view.abstentions))),
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
<footer>Teho {text(view.teho_version)} · run <code>{text(view.run_id)}</code></footer>
<script type="application/json" id="data">{plot_data(view.plots, view.heat_map)}</script>
<!-- uPlot, which draws the plots:
{_asset("vendor/LICENSE.uPlot")} -->
<script>{scripts[0]}</script>
<script>{scripts[1]}</script>
</body>
</html>
"""


@cache
def _asset(path: str) -> str:
    content = files("teho.show").joinpath(path).read_text(encoding="utf-8")
    # uPlot's first line is a link to its site; the page keeps the licence instead.
    return re.sub(r"\A/\*! https?://[^\n]*\*/\n", "", content)


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _section(title: str, key: str, inner: str) -> list[str]:
    if not inner:
        return []
    return [f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{inner}</section>\n']


def _header(view: View) -> str:
    name = f"<b>{text(view.name)}</b> · " if view.name else ""
    facts = "".join(_fact(fact) for fact in view.facts if fact.value is not None and not fact.aside)
    return f"""<header class="{view.verdict_severity}">
<p class="of">{name}{text(view.run_id)} · {text(view.state)}</p>
<p class="mark">{SEVERITY_WORDS[view.verdict_severity]}</p>
<h1>{prose(view.verdict)}</h1>
<p class="command"><code>{text(view.command)}</code></p>
{f'<dl class="facts">{facts}</dl>' if facts else ""}
</header>"""


def _fact(fact: Fact) -> str:
    value = prose(cell_text(fact.value, fact.unit))
    words = "" if is_number(fact.value) else ' class="words"'
    note = f"<small>{prose(fact.note)}</small>" if fact.note else ""
    if isinstance(fact.value, Missing):
        value = f'<span class="missing">{value}</span>'
        note += f"<small>{prose(fact.value.detail)}</small>" if fact.value.detail else ""
    return f"<div><dt>{text(fact.label)}</dt><dd{words}>{value}{note}</dd></div>"


def _findings(findings: Sequence[Finding]) -> str:
    cards = "".join(_card(finding) for finding in findings)
    return f'<ul class="cards">\n{cards}</ul>\n' if cards else ""


def _card(finding: Finding) -> str:
    severity = severity_of(finding.severity)
    figures = "".join(
        f"<div><dt>{text(item.label)}</dt><dd>{prose(cell_text(item.value, item.unit))}</dd></div>"
        for item in evidence_of(finding)
    )
    limits = "".join(
        f"<li>threshold {prose(threshold_text(limit))} · {prose(limit.source)}</li>"
        for limit in finding.thresholds
    )
    return f"""<li class="card {severity}">
<p class="mark">{SEVERITY_WORDS[severity]}</p>
<h3>{prose(finding.sentence)}</h3>
{f'<dl class="figures">{figures}</dl>' if figures else ""}
{f'<ul class="limits">{limits}</ul>' if limits else ""}
{_action(finding.action)}
</li>
"""


def _action(action: str) -> str:
    """Write what to do: prose, and each command on a line of its own, to be copied."""
    first, *rest = _COMMAND.split(action)
    parts = [f'<p class="action">{prose(first)}</p>'] if first.strip() else []
    for command, after in zip(rest[::2], rest[1::2], strict=True):
        parts.append(
            f'<div class="copyable"><code tabindex="0">{text(command)}</code>'
            '<button type="button" class="copy">copy</button></div>'
        )
        # The line's end takes the place of the comma or the full stop behind the command.
        said = after.lstrip(" .,;:")
        parts.extend([f'<p class="action more">{prose(said)}</p>'] if said else [])
    return "".join(parts)


def _list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{prose(sentence)}</li>" for sentence in sentences)
    return f'<ul class="listed">{items}</ul>\n' if items else ""


def _tables(tables: Sequence[Table]) -> str:
    inner = "".join(html_table(table) for table in tables if table.rows)
    return f'<div class="tables">{inner}</div>\n' if inner else ""


def html_table(table: Table) -> str:
    """Write a table of the view, with its title, in a box that scrolls."""
    shared, columns = without_shared(table)
    numeric = {column.key: is_numeric(column, table.rows) for column in columns}
    rows = "".join(_row(table, place, columns, numeric) for place in worst_first(table))
    below = [*([table.note] if table.note else []), *explanations(table)]
    notes = "".join(f"<li>{prose(sentence)}</li>" for sentence in below)
    head = _table_head(columns, numeric)
    return f"""<div class="table">
<h3>{text(table.title)} <small>{escape(" · ".join(shared))}</small></h3>
{scrolling(table.title, f"<thead>{head}</thead><tbody>{rows}</tbody>")}
{f'<ul class="below">{notes}</ul>' if notes else ""}
</div>
"""


def _row(table: Table, place: int, columns: tuple[Column, ...], numeric: dict[str, bool]) -> str:
    row = table.rows[place]
    cells = "".join(
        _cell(row.get(column.key), column, numeric=numeric[column.key], heads=position == 0)
        for position, column in enumerate(columns)
    )
    odd = ' class="outlier"' if place in table.outliers else ""
    return f"<tr{odd}>{cells}</tr>\n"


def _table_head(columns: tuple[Column, ...], numeric: dict[str, bool]) -> str:
    """Write the headings: those of the bands above, a column's own unit behind its name."""
    upper, lower = [], []
    for band, members in bands(columns):
        units = {heading_unit(column) for column in members}
        shared = units.pop() if band and len(units) == 1 else ""
        heading = f"{band}, {shared}" if shared else band
        upper.append(
            f'<th scope="colgroup" colspan="{len(members)}"><span>{text(heading)}</span></th>'
            if band
            else "<td></td>"
        )
        for column in members:
            unit = "" if shared else heading_unit(column)
            label = f"{column.label}, {unit}" if unit else column.label
            side = ' class="n"' if numeric[column.key] else ""
            lower.append(f'<th scope="col"{side}>{text(label)}</th>')
    first = f"<tr>{''.join(upper)}</tr>" if any("<th" in cell for cell in upper) else ""
    return f"{first}<tr>{''.join(lower)}</tr>"


def _cell(cell: Cell, column: Column, *, numeric: bool, heads: bool) -> str:
    classes = ["n"] if numeric else []
    if cell is None or isinstance(cell, Missing):
        classes.append("missing")
    start = 'th scope="row"' if heads else "td"
    named = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{start}{named}>{text(column_text(cell, column))}</{start[:2]}>"
