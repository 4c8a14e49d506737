"""What `teho bench` measured, as one HTML file that needs nothing else: no server, no script."""

from __future__ import annotations

from importlib.resources import files

from teho.errors import InputError
from teho.model.bench import Bench, Measured
from teho.show.bench_text import facts_of
from teho.show.build.bench_tables import tables_of
from teho.show.html.markup import prose, text
from teho.show.html.tables import html_table
from teho.show.plot.bench import draw
from teho.show.plot.drawn import inlined

__all__ = ["render_bench_html"]

# Plots carry their looks as attributes, which only 'unsafe-inline' allows; nothing runs here.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
.verdict { font-size: 1.2rem; font-weight: 600; line-height: 1.4; max-width: 46em; }
.aside { color: var(--soft); }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
"""


def render_bench_html(bench: Bench) -> str:
    """Render all examples as one self-contained page; without matplotlib, without plots."""
    style = files("teho.show").joinpath("templates/report.css").read_text(encoding="utf-8")
    names = ", ".join(measured.title for measured in bench.results)
    sections = "".join(map(_section, bench.results))
    devices = " · ".join(text(name) for name in (bench.cpu, *bench.gpus) if name)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(names)} · Teho</title>
<style>{style}{_STYLE}</style>
</head>
<body>
<main>
<p class="of">{devices} · {text(bench.at)}</p>
{sections}
<ul class="listed">{_items(bench.notes)}</ul>
</main>
<footer>Teho {text(bench.teho_version)}</footer>
</body>
</html>
"""


def _section(measured: Measured) -> str:
    facts = " · ".join(map(prose, facts_of(measured)))
    tables = "".join(html_table(table) for table in tables_of(measured))
    return f"""<section aria-labelledby="{measured.name}">
<h1 id="{measured.name}">{text(measured.title)}</h1>
<p class="verdict">{prose(measured.verdict)}</p>
<p class="aside">{facts}</p>
{_plot(measured)}
<div class="tables">{tables}</div>
<ul class="listed">{_items(measured.notes)}</ul>
</section>
"""


def _plot(measured: Measured) -> str:
    if not measured.timings:
        return ""
    try:
        return f"<figure>{inlined(draw(measured, 'svg'))}</figure>"
    except InputError as error:
        return f'<p class="aside">Without a plot: {prose(str(error))}</p>'


def _items(sentences: tuple[str, ...]) -> str:
    return "".join(f"<li>{prose(sentence)}</li>" for sentence in sentences)
