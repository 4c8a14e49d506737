"""A document as one self-contained HTML file: no server, no outside address, no font."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import NamedTuple

import msgspec

from teho.model.document import Document, Fact, Item, Listing, Report, Table
from teho.model.finding import Finding
from teho.model.missing import Missing
from teho.process.parallel_map import in_child
from teho.show.cells import (
    SEVERITY_WORDS,
    evidence_of,
    is_command,
    is_number,
    labelled_value,
    not_judged,
    quantity,
    when_text,
)
from teho.show.html.heat import heat_section
from teho.show.html.many_lines import with_few_lines
from teho.show.html.markup import advice, copyable, folded, headline, prose, text
from teho.show.html.plots import PlotLinks, plot_data, plots_section
from teho.show.html.roofline import rooflines_section
from teho.show.html.step import step_section
from teho.show.html.tables import html_tables
from teho.show.html.words import PageWords

__all__ = ["PageParts", "page_parts", "render_html", "shipped"]

_MANY_ROWS = 3000
"""From this number of rows on, another process renders the tables."""
_LONG_VERDICT = 120
"""Letters of a verdict from which on it is written smaller."""
_LONG_FACT = 50
"""Letters of a fact from which on it has the width of two."""


class PageParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a page about a document, for a page with other parts around them."""

    title: str
    """Plain text; all other parts are HTML."""
    header: str
    sections: str
    footer: str
    data: str
    """Points of the plots: JSON that can be written into a script element."""
    has_plots: bool


def page_parts(document: Document, pictures: Sequence[str] = ()) -> PageParts:
    """Render the parts of a page; see `render_html`."""
    page_words = PageWords()
    tables: Callable[[], tuple[str, frozenset[str]]] = partial(_tables, document.tables)
    if sum(len(table.rows) for table in document.tables) >= _MANY_ROWS:
        tables = in_child(tables)
    # The tables may be rendered in another process: the plots do not wait for them.
    drawn = with_few_lines(document.plots, document.findings)
    data = plot_data(drawn, document.heat_map, document.findings)
    plots, heat = plots_section(drawn), heat_section(document.heat_map)
    header = _header(document, page_words)
    used, words = tables()
    page_words.add(words)
    large = _Large(used, plots, heat)
    return PageParts(
        title=_title(document),
        header=header,
        sections="".join(_sections(document, pictures, large, page_words)),
        footer=_footer(document),
        data=data,
        has_plots=bool(document.plots or document.heat_map),
    )


def render_html(document: Document, pictures: Sequence[str] = ()) -> str:
    """Render a document as one self-contained page.

    The page loads no other file. Its content security policy allows only the scripts inside it,
    by their hashes. Without JavaScript, plots are tables.

    Args:
        document: what to render.
        pictures: drawings of the results, as SVG.
    """
    parts = page_parts(document, pictures)
    scripts = [shipped("templates/report.js")]
    style = shipped("templates/report.css")
    licence = ""
    if parts.has_plots:
        scripts.insert(0, shipped("vendor/uPlot.iife.min.js"))
        style = shipped("vendor/uPlot.min.css") + style
        licence = f"<!-- uPlot, which draws the plots:{shipped('vendor/LICENSE.uPlot')} -->"
    # Pictures have style attributes, which only 'unsafe-inline' allows; they run no code.
    styles = "'unsafe-inline'" if pictures else _hash(style)
    policy = f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {styles}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(parts.title)} · Teho</title>
<style>{style}</style>
</head>
<body>
{parts.header}
<main>
{parts.sections}
</main>
<footer>{parts.footer}</footer>
<script type="application/json" id="data">{parts.data}</script>
{licence}
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""


class _Large(NamedTuple):
    """The large parts of a page, as HTML."""

    tables: str
    plots: str
    heat_map: str


def _tables(tables: Sequence[Table]) -> tuple[str, frozenset[str]]:
    """Render the tables; return them, and the words that they use."""
    words = PageWords()
    return html_tables(tables, words), words.used


def _sections(
    document: Document, pictures: Sequence[str], large: _Large, page_words: PageWords
) -> Iterable[str]:
    lead = _lead(document)
    links = PlotLinks(document.plots)
    cards = "".join(
        _card(one, number, links) for number, one in enumerate(document.findings) if one is not lead
    )
    findings = f'<ul class="cards">\n{cards}</ul>\n' if cards else ""
    lists = [one for one in document.lists if one.items]
    hidden = [one for one in lists if one.level == "why"]
    yield from _section("Findings", "findings", findings)
    yield from _listings(one for one in lists if one.level == "first")
    yield from _section(
        "Pictures",
        "pictures",
        "".join(
            f'<figure class="picture" tabindex="0" aria-label="picture">{one}</figure>'
            for one in pictures
        ),
    )
    map_title = document.heat_map.title if document.heat_map else ""
    yield from _section(text(map_title), "heats", large.heat_map)
    step = document.step
    title = "One step over time" if step and step.step is not None else "The trace over time"
    yield from _section(title, "step", step_section(step))
    used = "What it used" if isinstance(document, Report) else "Figures"
    yield from _section(used, "used", large.tables)
    yield from _listings(one for one in lists if one.level == "default")
    yield from _section("Next", "next", _list(document.commands, advice))
    yield from _section("Roofline", "rooflines", rooflines_section(document.rooflines))
    yield from _section("Over time", "plots", large.plots)
    yield from _section("Trouble with the recording", "troubles", _list(document.troubles))
    folds = [
        page_words.section(),
        folded("Notes", _list(document.notes)),
        folded("Not judged", _list(not_judged(document.abstentions))),
        *(folded(one.title, _listing(one)) for one in hidden),
    ]
    yield from _section("Details", "details", "".join(folds))


@cache
def shipped(path: str) -> str:
    """Return a style or a script of Teho, by its path in this package."""
    content = files("teho.show").joinpath(path).read_text(encoding="utf-8")
    # The first line of uPlot is a link to its site; the page has the licence instead.
    return re.sub(r"\A/\*! https?://[^\n]*\*/\n", "", content)


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _section(title: str, key: str, inner: str) -> list[str]:
    if not inner:
        return []
    return [f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{inner}</section>\n']


def _lead(document: Document) -> Finding | None:
    """Return the finding that is the headline: its advice is below the headline."""
    first = document.findings[0] if document.findings else None
    return first if first and first.sentence in document.verdict else None


def _title(document: Document) -> str:
    return document.title or (document.run_id if isinstance(document, Report) else "")


def _header(document: Document, page_words: PageWords) -> str:
    facts = "".join(
        _fact(fact, page_words)
        for fact in document.facts
        if fact.value is not None and not fact.aside
    )
    about = f"<b>{text(document.title)}</b>"
    command = ""
    if isinstance(document, Report):
        name = f"<b>{text(document.name)}</b> · " if document.name else ""
        about = f"{name}{text(document.run_id)} · {text(document.state)}"
        if document.command:
            command = f'<p class="command"><code>{text(document.command)}</code></p>'
    lead = _lead(document)
    inner = f'<div class="lead">{_body(lead, 0, PlotLinks(document.plots))}</div>' if lead else ""
    return f"""<header class="{document.verdict_severity}">
<p class="of">{about}</p>
<p class="mark">{SEVERITY_WORDS[document.verdict_severity]}</p>
<h1{' class="long"' * (len(document.verdict) > _LONG_VERDICT)}>{headline(document.verdict)}</h1>
{inner}{command}
{f'<dl class="facts">{facts}</dl>' if facts else ""}
</header>"""


def _footer(document: Document) -> str:
    version = f"Teho {text(document.teho_version)}".strip()
    if isinstance(document, Report):
        return f"{version} · run <code>{text(document.run_id)}</code>"
    return version


def _fact(fact: Fact, page_words: PageWords) -> str:
    text = labelled_value(fact.value, fact.unit)
    value = prose(text)
    words = "" if is_number(fact.value) else ' class="words"'
    note = f"<small>{prose(fact.note)}</small>" if fact.note else ""
    longest = max(len(text), len(fact.note))
    if isinstance(fact.value, Missing):
        value = f'<span class="missing">{value}</span>'
        note += f"<small>{prose(fact.value.detail)}</small>" if fact.value.detail else ""
        longest = max(longest, len(fact.value.detail))
    wide = ' class="wide"' if longest > _LONG_FACT else ""
    return f"<div{wide}><dt>{page_words.link(fact.label)}</dt><dd{words}>{value}{note}</dd></div>"


def _card(finding: Finding, number: int, links: PlotLinks) -> str:
    severity = finding.severity.value
    return f"""<li class="card {severity}">
<p class="mark">{SEVERITY_WORDS[severity]}</p>
<h3>{prose(finding.sentence)}</h3>
{_body(finding, number, links)}
</li>
"""


def _body(finding: Finding, number: int, links: PlotLinks) -> str:
    """Write a finding without its sentence: the advice, the figures, the thresholds folded.

    Without JavaScript, its times are a link to the plot that shows them.
    """
    figures = "".join(
        f"<div><dt>{_linked(text(item.label), links.of_label(item.label))}</dt>"
        f"<dd>{prose(labelled_value(item.value, '' if item.unit == item.label else item.unit))}"
        "</dd></div>"
        for item in evidence_of(finding)
    )
    when = ""
    if finding.moments:
        times = f"When: {prose(when_text(finding.moments))}"
        place = links.of_metric(finding.moments.metric)
        when = f'<p class="when">{_linked(times, place, f" data-moments={number}")}</p>'
    limits = "".join(
        f"<li>threshold {prose(quantity(limit.value, limit.unit))} · {prose(limit.source)}</li>"
        for limit in finding.thresholds
    )
    return "\n".join(
        part
        for part in (
            advice(finding.action),
            f'<dl class="figures">{figures}</dl>' if figures else "",
            when,
            folded("Thresholds", f'<ul class="limits">{limits}</ul>' if limits else ""),
        )
        if part
    )


def _linked(inner: str, place: str, more: str = "") -> str:
    """Make a link to a plot; without a plot, only its text."""
    return f'<a href="#{place}"{more}>{inner}</a>' if place else inner


def _list(sentences: Iterable[str], write: Callable[[str], str] = prose) -> str:
    items = "".join(f"<li>{write(sentence)}</li>" for sentence in sentences)
    return f'<ul class="listed">{items}</ul>\n' if items else ""


def _listings(lists: Iterable[Listing]) -> Iterable[str]:
    for one in lists:
        yield from _section(text(one.title), f"list-{text(one.key)}", _listing(one))


def _listing(listing: Listing) -> str:
    return f'<ul class="listed">{"".join(map(_item, listing.items))}</ul>\n'


def _item(item: Item) -> str:
    mark = f'<span class="mark">{SEVERITY_WORDS[item.severity]}</span> ' if item.severity else ""
    lead = f"<b>{text(item.lead)}</b>{': ' if item.text else ''}" if item.lead else ""
    code = chr(10).join(map(text, item.code))
    if len(item.code) == 1 and is_command(item.code[0]):
        code = copyable(item.code[0])
    elif item.code:
        code = f'<pre tabindex="0"><code>{code}</code></pre>'
    details = "".join(f"<small>{prose(detail)}</small>" for detail in item.details)
    named = f' class="{item.severity}"' if item.severity else ""
    return f"<li{named}>{mark}{lead}{prose(item.text)}{details}{code}</li>\n"
