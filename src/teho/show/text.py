"""The report for a terminal, or for the file that a job's output goes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from teho.model.finding import Finding
from teho.show.cells import (
    MARKS,
    cell_text,
    evidence_of,
    explanations,
    not_judged,
    plain,
    severity_of,
    threshold_text,
)
from teho.show.flow import dotted, flow, printed, words
from teho.show.text_table import table_lines
from teho.show.view import Fact, RooflinePlot, Table, View
from teho.units import counted

__all__ = ["render_text"]

_STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "remark": "bold cyan",
    "good": "bold green",
    "unknown": "bold",
}
_SHORT_FINDINGS = 3
_SHORT_GPUS = 8
_INDENT = Text("  ")


def render_text(view: View, *, width: int, color: bool, full: bool) -> str:
    """Render a report for people; ends in a line break.

    No line is longer than `width`, but for commands that are there to be copied.

    Args:
        view: what to render.
        width: columns of the terminal.
        color: whether escape codes for colour may be written.
        full: everything; otherwise the verdict, the first findings and a small GPU table.
    """
    blocks = _full(view, width) if full else _short(view, width)
    return printed((block for block in blocks if block), width=width, color=color)


def _full(view: View, width: int) -> Iterator[list[Text]]:
    yield _head(view, width)
    for finding in view.findings:
        yield _finding(finding, width)
    for table in view.tables:
        if table.rows:
            yield _table(table, width)
    for roofline in view.rooflines:
        yield _roofline(roofline, width)
    yield [
        *_listed("Trouble with the recording", view.troubles, width),
        *_listed("Notes", view.notes, width),
        *_listed("Not judged", not_judged(view.abstentions), width),
    ]
    yield [_cropped(f"{plain(view.run_id)} · {plain(view.command)}", width)]


def _short(view: View, width: int) -> Iterator[list[Text]]:
    yield _head(view, width)
    for finding in view.findings[:_SHORT_FINDINGS]:
        # The verdict has just said the first one's sentence.
        said = view.verdict.startswith(finding.sentence)
        yield [*([] if said else _sentence(finding, width)), *_action(finding, width)]
    for table in view.tables:
        few = 0 < len(table.rows) <= _SHORT_GPUS
        if table.key == "nodes" or (table.key == "gpus" and few):
            yield _table(table, width)
    yield _listed("Trouble with the recording", view.troubles, width)
    left = [
        counted(count, noun)
        for count, noun in (
            (len(view.findings) - _SHORT_FINDINGS, "more finding"),
            (len(view.notes), "note"),
        )
        if count > 0
    ]
    more = f" ({', '.join(left)})" if left else ""
    yield [Text.assemble((f"Full report{more}: ", "dim"), f"teho report {plain(view.run_id)}")]


def _head(view: View, width: int) -> list[Text]:
    severity = view.verdict_severity
    lines = flow(words(view.verdict), width, Text(f"{MARKS[severity]} "), style="bold")
    lines[0].stylize(_STYLES[severity], 0, 1)
    facts = [_fact(fact) for fact in view.facts if fact.value is not None and not fact.aside]
    return [*lines, *flow(dotted(facts), width, _INDENT)] if facts else lines


def _fact(fact: Fact) -> Text:
    note = f" ({plain(fact.note)})" if fact.note else ""
    value = cell_text(fact.value, fact.unit)
    return Text.assemble((f"{plain(fact.label)} ", "dim"), value, (note, "dim"))


def _finding(finding: Finding, width: int) -> list[Text]:
    evidence = [
        Text.assemble((f"{plain(item.label)} ", "dim"), cell_text(item.value, item.unit))
        for item in evidence_of(finding)
    ]
    lines = _sentence(finding, width)
    if evidence:
        lines += flow(dotted(evidence), width, _INDENT)
    for threshold in finding.thresholds:
        limit = f"threshold {threshold_text(threshold)} · {threshold.source}"
        lines += flow(words(limit), width, _INDENT, style="dim", hang=4)
    return lines + _action(finding, width)


def _sentence(finding: Finding, width: int) -> list[Text]:
    severity = severity_of(finding.severity)
    lines = flow(words(finding.sentence), width, Text(f"{MARKS[severity]} "))
    lines[0].stylize(_STYLES[severity], 0, 1)
    return lines


def _action(finding: Finding, width: int) -> list[Text]:
    pieces = words(finding.action)
    for piece in pieces:
        piece.no_wrap = "`" in piece.plain
    return flow(pieces, width, Text("  → ")) if pieces else []


def _table(table: Table, width: int) -> list[Text]:
    lines = table_lines(table, width)
    if table.rest:
        lines += flow(words(f"… {table.rest}"), width, Text(), style="dim", hang=2)
    below = [table.note] if table.note else []
    for sentence in [*below, *explanations(table)]:
        lines += flow(words(sentence), width, _INDENT, style="dim", hang=4)
    return lines


def _roofline(roofline: RooflinePlot, width: int) -> list[Text]:
    said = f"{roofline.model} · {roofline.sentence}"
    lines = flow(words(said), width, Text("Roofline  ", "bold"))
    # The first note is the one that nobody should miss; the page has them all.
    return lines + flow(words(roofline.notes[0]), width, _INDENT, style="dim", hang=4)


def _listed(title: str, sentences: Iterable[str], width: int) -> list[Text]:
    lines: list[Text] = []
    for sentence in sentences:
        lines += flow(words(sentence), width, _INDENT, style="dim", hang=4)
    return [*flow(words(title), width, Text(), style="dim"), *lines] if lines else []


def _cropped(text: str, width: int) -> Text:
    line = Text(text, "dim")
    line.truncate(width, overflow="ellipsis")
    return line
