"""A document as text, for a terminal or the output file of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec
from rich.text import Text

from teho.explain.wording import capital
from teho.model.document import Document, Fact, Item, Listing, Report, RooflinePlot, Table
from teho.model.finding import Finding
from teho.show.advice_code import advice_parts
from teho.show.cells import (
    MARKS,
    counted_evidence,
    evidence_of,
    explanations,
    labelled_value,
    not_judged,
    plain,
    quantity,
    when_text,
    without_empty,
)
from teho.show.text.flow import dotted, flow, printed, words
from teho.show.text.table import table_lines
from teho.units import counted

__all__ = ["VERDICT_STYLES", "Detail", "render_text"]

Detail = Literal["short", "brief", "default", "why"]
"""How much of a document is printed. `teho run` prints `brief` at its end."""

VERDICT_STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "remark": "bold cyan",
    "good": "bold green",
    "unknown": "bold yellow",
}
_BRIEF_FINDINGS = 3
_BRIEF_GPUS = 8
_FINDING_LINES = 5
_CODE_INDENT = "        "
"""Largest number of lines of one finding at the default level."""
_SCREEN_LINES = 40
_LAST_LINES = 4
"""Lines of a screen for the names of parts that are left out."""
_INDENT = Text("  ")
_DEEPER = Text("    ")


class _Block(NamedTuple):
    """Lines that belong together."""

    lines: list[Text]
    name: str
    """Name in the line about parts that are left out."""
    keep: bool = False
    """Whether it is printed even if the screen is full."""
    shorter: Iterable[list[Text]] = ()
    """Fewer and fewer lines, for a screen that is nearly full. They can be read once."""


def render_text(document: Document, *, width: int, color: bool, detail: Detail = "default") -> str:
    """Render a document for people; ends in a line break.

    No line is longer than `width`, except commands, which can be copied.

    Args:
        document: what to render.
        width: columns of the terminal.
        color: whether escape codes for colour may be written.
        detail: `short` is the verdict, `brief` adds the first findings and a small table of GPUs,
            `default` fits a screen of 40 lines, `why` is everything.
    """
    if detail == "short":
        blocks: Iterable[list[Text]] = [_verdict(document, width)]
    elif detail == "brief":
        blocks = _brief(document, width)
    elif detail == "default":
        blocks = _default(document, width)
    else:
        blocks = (block.lines for block in _parts(document, width, is_full=True))
    return printed((block for block in blocks if block), width=width, color=color)


def _default(document: Document, width: int) -> Iterator[list[Text]]:
    """Yield the blocks that fit on a screen, then the names of the others."""
    blocks = [block for block in _parts(document, width, is_full=False) if block.lines]
    left = _SCREEN_LINES - sum(len(block.lines) + 1 for block in blocks if block.keep) - _LAST_LINES
    dropped: list[str] = []
    for number, block in enumerate(blocks):
        lines = block.lines
        # The block below the verdict is the answer: it is printed even if it is long.
        if number > 1 and not block.keep and left <= len(lines):
            lines = next((shorter for shorter in block.shorter if len(shorter) < left), [])
            if not lines:
                dropped.append(_quoted(block.name))
                continue
            dropped.append(f"{_quoted(block.name)} (whole)")
        left -= 0 if block.keep else len(lines) + 1
        yield lines
    dropped += _folded(document)
    if dropped:
        names = [
            f"{name} ({counted(count, 'part')})" if (count := dropped.count(name)) > 1 else name
            for name in dict.fromkeys(dropped)
        ]
        yield _left_out(names, width)


def _left_out(names: Sequence[str], width: int) -> list[Text]:
    """Return the names of parts in the last lines of a screen; if too many, only the first."""
    for count in range(len(names), 0, -1):
        more = f" and {counted(len(names) - count, 'more part')}" if count < len(names) else ""
        shown = f"{'; '.join(names[:count])}{more}."
        lines = flow(words(shown), width, Text("Add --why to see: ", "dim"), hang=2)
        if len(lines) < _LAST_LINES:
            break
    return lines


def _folded(document: Document) -> Iterator[str]:
    """Yield the names of parts that only `--why` shows."""
    if any(finding.thresholds for finding in document.findings):
        yield _quoted("thresholds")
    for table in document.tables:
        if table.rows and (table.level == "why" or not without_empty(table)):
            yield _quoted(table.title)
    for _, same in groupby(document.lists, key=lambda listing: listing.key):
        hidden = [one for one in same if one.items and one.level == "why"]
        if len(hidden) > 1:
            yield counted(len(hidden), plain(hidden[0].key))
        elif hidden:
            yield f"{_quoted(hidden[0].title)} ({counted(len(hidden[0].items), 'item')})"
    if any(i.details for one in document.lists if one.level == "default" for i in one.items):
        yield _quoted("remarks and sources")
    if isinstance(document, Report) and any(table.note for table in document.tables):
        yield _quoted("what the figures mean")
    if document.rooflines and any(len(one.notes) > 1 for one in document.rooflines):
        yield _quoted("notes on the roofline")
    if document.notes and isinstance(document, Report):
        yield counted(len(document.notes), "note")
    if document.abstentions:
        yield f"{_quoted('not judged')} ({counted(len(document.abstentions), 'rule')})"


def _quoted(name: str) -> str:
    return f"“{capital(plain(name))}”"


def _parts(document: Document, width: int, *, is_full: bool) -> Iterator[_Block]:
    yield _Block(_head(document, width), "", keep=True)
    for number, finding in enumerate(document.findings):
        lines = _finding(finding, document, width, is_full=is_full)
        yield _Block(lines, "more findings", keep=number == 0)
    yield _Block(_listed("Trouble with the recording", document.troubles, width), "", keep=True)
    yield from _lists(document, width, ("first",), is_full=is_full)
    for table in document.tables:
        shown = table if is_full else without_empty(table)
        if table.rows and shown and (is_full or table.level != "why"):
            # In a report, notes explain the figures, which is the same in every run.
            if isinstance(document, Report) and not is_full:
                shown = msgspec.structs.replace(shown, note="")
            lines = _table(shown, width, is_full=is_full)
            shorter = () if is_full else _shorter(shown, width)
            yield _Block(lines, plain(table.title), shorter=shorter)
    yield from _lists(document, width, ("default", *["why"] * is_full), is_full=is_full)
    for roofline in document.rooflines:
        yield _Block(_roofline(roofline, width, is_full=is_full), "roofline")
    if is_full or not isinstance(document, Report):
        title = "Notes" if isinstance(document, Report) else ""
        yield _Block(_listed(title, document.notes, width), "notes")
    if is_full:
        unjudged = not_judged(document.abstentions)
        yield _Block(_listed("Not judged", unjudged, width), "not judged")
    commands = [
        line for one in document.commands for line in flow(_whole(one), width, _INDENT, style="dim")
    ]
    yield _Block(commands, "", keep=True)
    if isinstance(document, Report):
        run = " · ".join(map(plain, filter(None, (f"Run {document.run_id}", document.command))))
        lines = [Text(run, "dim")]
        if is_full:
            lines = flow(words(run), width, Text(), style="dim", hang=2)
        lines[0].truncate(width, overflow="ellipsis")
        yield _Block(lines, "", keep=True)


def _lists(
    document: Document, width: int, levels: Sequence[str], *, is_full: bool
) -> Iterator[_Block]:
    for listing in document.lists:
        if listing.items and listing.level in levels:
            yield _Block(_listing(listing, width, is_full=is_full), plain(listing.title))


def _brief(document: Document, width: int) -> Iterator[list[Text]]:
    yield _head(document, width)
    for finding in document.findings[:_BRIEF_FINDINGS]:
        # The verdict has the sentence of the first finding already.
        is_reported = finding.sentence in document.verdict
        head = [] if is_reported else _marked(finding.sentence, finding.severity.value, width)
        yield [*head, *_action(finding.action, width)]
    for table in document.tables:
        few = 0 < len(table.rows) <= _BRIEF_GPUS
        if table.key == "nodes" or (table.key == "gpus" and few):
            yield _table(table, width, is_full=False)
    yield _listed("Trouble with the recording", document.troubles, width)
    left = [
        counted(count, noun)
        for count, noun in (
            (len(document.findings) - _BRIEF_FINDINGS, "more finding"),
            (len(document.notes), "note"),
        )
        if count > 0
    ]
    more = f" ({', '.join(left)})" if left else ""
    if isinstance(document, Report):
        command = f"teho report {plain(document.run_id)}"
        yield [Text.assemble((f"Full report{more}: ", "dim"), command)]


def _verdict(document: Document, width: int) -> list[Text]:
    return _marked(document.verdict, document.verdict_severity, width, style="bold")


def _marked(sentence: str, severity: str, width: int, *, style: str = "") -> list[Text]:
    """Lay out a sentence behind the mark of its severity."""
    lines = flow(words(sentence), width, Text(f"{MARKS[severity]} "), style=style)
    lines[0].stylize(VERDICT_STYLES[severity], 0, 1)
    return lines


def _head(document: Document, width: int) -> list[Text]:
    lines = _verdict(document, width)
    facts = [_fact(fact) for fact in document.facts if fact.value is not None and not fact.aside]
    return [*lines, *flow(dotted(facts), width, _INDENT)] if facts else lines


def _fact(fact: Fact) -> Text:
    note = f" ({plain(fact.note)})" if fact.note else ""
    value = labelled_value(fact.value, fact.unit)
    label = f"{plain(fact.label)} " if fact.label else ""
    return Text.assemble((label, "dim"), value, (note, "dim"))


def _finding(finding: Finding, document: Document, width: int, *, is_full: bool) -> list[Text]:
    """Lay out a finding: sentence, advice, evidence; with `is_full` also thresholds and kind.

    Without `is_full`, it has at most five lines: sentences of the advice, then lines of the
    evidence are left out.
    """
    # The verdict has the sentence of the first finding already.
    is_reported = finding is document.findings[0] and finding.sentence in document.verdict
    head = [] if is_reported else _marked(finding.sentence, finding.severity.value, width)
    evidence = [
        Text(number)
        if (number := counted_evidence(item))
        else Text.assemble((f"{plain(item.label)} ", "dim"), labelled_value(item.value, item.unit))
        for item in evidence_of(finding)
    ]
    figures = flow(dotted(evidence), width, _DEEPER) if evidence else []
    if is_full:
        limits = [line for limit in _limits(finding) for line in _dim(limit, width, _DEEPER)]
        return head + _action(finding.action, width) + figures + limits
    action = _fitted_action(finding.action, width, _FINDING_LINES - min(len(head), 2))
    room = max(_FINDING_LINES - len(head) - len(action), 0)
    if len(figures) > room > 0:
        figures[room - 1].append(" …", "dim")
        figures[room - 1].truncate(width, overflow="ellipsis")
    return head + action + figures[:room]


def _limits(finding: Finding) -> Iterator[str]:
    if finding.moments:
        yield f"seen in the run {when_text(finding.moments)}"
    for threshold in finding.thresholds:
        yield f"threshold {quantity(threshold.value, threshold.unit)} · {threshold.source}"
    yield f"name of this finding: {finding.kind}"


def _fitted_action(action: str, width: int, most: int) -> list[Text]:
    """Return the first parts of an advice that fit; the rest becomes `…`.

    An advice with a block of code stays whole: a part of the code would be of no use.
    """
    lines = _action(action, width)
    if any(isinstance(part, tuple) for part in advice_parts(action)):
        return lines
    for ends in ("[.:;]", "[.,:;]"):
        # A part does not end within a command or within brackets.
        parts = re.split(rf"(?<={ends})\s+(?=[^`]*(?:`[^`]*`[^`]*)*$)(?![^(]*\))", action)
        while len(lines) > most and len(parts) > 1:
            parts.pop()
            kept = " ".join(parts)
            lines = _action(f"{kept} …" if kept[-1] == "." else f"{kept[:-1]} …", width)
    return lines


def _action(action: str, width: int) -> list[Text]:
    lines: list[Text] = []
    for part in advice_parts(action):
        if isinstance(part, tuple):
            lines += [Text(f"{_CODE_INDENT}{plain(line)}", "cyan", no_wrap=True) for line in part]
        else:
            lines += flow(_whole(part), width, Text("    " if lines else "  → "))
    return lines


def _whole(sentence: str) -> list[Text]:
    """Cut a sentence into pieces; a command stays whole, so that it can be copied."""
    pieces = words(sentence)
    for piece in pieces:
        piece.no_wrap = "`" in piece.plain
    return pieces


def _shorter(table: Table, width: int) -> Iterator[list[Text]]:
    """Yield a table without some columns, then also with fewer and fewer rows."""
    yield _table(table, width, is_full=False, is_short=True)
    columns = tuple(column for column in table.columns if not column.spare)
    for count in range(len(table.few), 1, -1):
        few = msgspec.structs.replace(table, columns=columns, shown=table.few[:count], rest="")
        yield _table(few, width, is_full=False, is_short=True)


def _table(table: Table, width: int, *, is_full: bool, is_short: bool = False) -> list[Text]:
    lines = table_lines(table, width, is_full=is_full, is_short=is_short)
    if table.rest:
        lines += flow(words(f"… {table.rest}"), width, Text(), style="dim", hang=2)
    for sentence in filter(None, (table.note, *explanations(table))):
        lines += _dim(sentence, width)
    return lines


def _listing(listing: Listing, width: int, *, is_full: bool) -> list[Text]:
    lines = [Text(plain(listing.title), "bold")] if listing.title else []
    for item in listing.items:
        is_first = listing.level == "first"
        lines += _item(item, width, arrow="→ " * is_first, is_full=is_full or is_first)
    return lines


def _item(item: Item, width: int, *, arrow: str, is_full: bool) -> list[Text]:
    lead = Text("  ")
    if item.severity:
        lead.append(MARKS[item.severity], VERDICT_STYLES[item.severity]).append(" ")
    if item.lead:
        lead.append(plain(item.lead), "bold").append(": " if item.text else "")
    if lead.cell_len > width // 2 and item.text:  # a long name is on a line of its own
        lines = [lead, *flow(words(item.text), width, Text("    "))]
    else:
        lines = (
            flow(words(item.text), width, lead, hang=4) if item.text else [lead] * bool(item.lead)
        )
    lines += [Text(f"    {arrow}").append(plain(line), "cyan") for line in item.code]
    for detail in item.details if is_full else ():
        lines += flow(words(detail), width, Text("    "), style="dim", hang=6)
    return lines


def _roofline(roofline: RooflinePlot, width: int, *, is_full: bool) -> list[Text]:
    shown = f"{roofline.model} · {roofline.sentence}"
    lines = flow(words(shown), width, Text("Roofline  ", "bold"))
    # Every reader needs the first note.
    for note in roofline.notes if is_full else roofline.notes[:1]:
        lines += _dim(note, width)
    return lines


def _listed(title: str, sentences: Sequence[str], width: int) -> list[Text]:
    lines = [line for sentence in sentences for line in _dim(sentence, width)]
    head = flow(words(title), width, Text(), style="dim") if title else []
    return [*head, *lines] if lines else []


def _dim(sentence: str, width: int, lead: Text = _INDENT) -> list[Text]:
    return flow(words(sentence), width, lead, style="dim", hang=lead.cell_len + 2)
