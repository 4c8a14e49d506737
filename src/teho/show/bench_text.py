"""What `teho bench` measured, on a terminal: the verdict, the figures, what to know of them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from teho.bench.examples import LIBRARIES, BenchExample
from teho.model.bench import Bench, Measured
from teho.show.build.bench_tables import tables_of
from teho.show.cells import plain
from teho.show.text.flow import dotted, flow, printed, words
from teho.show.text.table import table_lines
from teho.units import format_duration

__all__ = ["facts_of", "render_bench", "render_examples"]


def render_examples(examples: Iterable[BenchExample], *, width: int, color: bool) -> str:
    """Render the list of examples; ends in a line break."""
    lines = []
    for example in examples:
        lead = Text.assemble((f"{example.name:<12}", "bold"))
        lines += flow(words(example.shows), width, lead)
    first = flow(words("`teho bench NAME --quick` takes less than a minute each"), width, Text())
    return printed([lines, first], width=width, color=color)


def render_bench(bench: Bench, *, width: int, color: bool) -> str:
    """Render all examples; ends in a line break."""
    blocks = [block for measured in bench.results for block in _example(measured, width)]
    if bench.notes:
        blocks.append([line for note in bench.notes for line in _sentence(note, width)])
    return printed(blocks, width=width, color=color)


def _example(measured: Measured, width: int) -> Iterable[list[Text]]:
    agrees = all(one.agrees for one in measured.agreements)
    mark, style = ("✓", "bold green") if agrees else ("✗", "bold red")
    if not measured.timings:
        mark, style = "?", "bold yellow"
    head = [Text.assemble((plain(measured.title), "bold"))]
    head += flow(words(measured.verdict), width, Text.assemble((mark, style), " "), style="bold")
    facts = [Text(plain(fact), "dim") for fact in facts_of(measured)]
    yield head + flow(dotted(facts), width, Text("  "))
    for table in tables_of(measured):
        below = _sentence(table.note, width) if table.note else []
        yield table_lines(table, width) + below
    if measured.notes:
        yield [line for note in measured.notes for line in _sentence(note, width)]


def facts_of(measured: Measured) -> list[str]:
    """Return who took part, in which Python, on what, and how long it took."""
    there = [one for one in measured.participants if one.version]
    return [
        *dict.fromkeys(f"{LIBRARIES[one.library]} {one.version}" for one in there),
        *dict.fromkeys(f"Python {one.python}" for one in there),
        *dict.fromkeys(one.device for one in there if one.device),
        format_duration(measured.elapsed_s),
    ]


def _sentence(text: str, width: int) -> list[Text]:
    return flow(words(text), width, Text("  "), style="dim")
