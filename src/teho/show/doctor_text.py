"""What `teho doctor` found, on a terminal: what is wrong first, then what could not be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from teho.doctor.examine import symptoms_of
from teho.model.doctor import CheckResult, Examination, SelfTest, Symptom
from teho.model.finding import Severity
from teho.show.cells import MARKS, cell_text, plain, threshold_text
from teho.show.flow import dotted, flow, printed, sentence, words
from teho.show.text_table import table_lines
from teho.show.view import Cell, Column, Table
from teho.units import counted, format_duration

__all__ = ["problem_lines", "render_examination"]

_STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "remark": "bold cyan",
    "good": "bold green",
    "unknown": "bold yellow",
}
_COLUMNS = (
    Column(key="library", label="Library"),
    Column(key="precision", label="Precision"),
    Column(key="size", label="Size"),
    Column(key="rate", label="Rate", unit="FLOP/s"),
    Column(key="peak", label="Of peak", unit="%"),
    Column(key="error", label="Error"),
)


def render_examination(examination: Examination, *, width: int, color: bool) -> str:
    """Render it; ends in a line break."""
    blocks = [_head(examination, width)]
    if examination.self_test:
        blocks.append(_self_test(examination.self_test, width))
    blocks += [_symptom(one, width) for one in symptoms_of(examination)]
    blocks.append(_rest("Not judged", "abstained", examination.checks, width))
    blocks.append(_rest("Fine", "fine", examination.checks, width))
    blocks.append(_moot(examination.checks, width))
    return printed((block for block in blocks if block), width=width, color=color)


def problem_lines(examination: Examination) -> Iterator[str]:
    """Yield one line for each problem, with what to do; remarks are none."""
    for one in symptoms_of(examination):
        if one.severity is not Severity.REMARK:
            word = "this job is doomed" if one.dooms else one.severity.value
            yield plain(f"{word}: {one.sentence} Next: {one.action} [{one.kind}]")


def _head(examination: Examination, width: int) -> list[Text]:
    mark, text = _verdict(examination)
    lines = flow(words(text), width, Text(f"{MARKS[mark]} "), style="bold")
    lines[0].stylize(_STYLES[mark], 0, 1)
    facts = [("Host", examination.host), ("Cluster", examination.cluster)]
    if examination.job_id:
        facts.append(("Job", examination.job_id))
    facts += [("Python", examination.python), ("Took", format_duration(examination.wall_s))]
    labelled = [Text.assemble((f"{label} ", "dim"), plain(fact)) for label, fact in facts if fact]
    return [*lines, *flow(dotted(labelled), width, Text("  "))]


def _verdict(examination: Examination) -> tuple[str, str]:
    found = symptoms_of(examination)
    doomed = [one for one in found if one.dooms]
    grave = [one for one in found if one.severity is Severity.CRITICAL]
    worse = [one for one in found if one.severity is not Severity.REMARK]
    unjudged = [one for one in examination.checks if one.state == "abstained"]
    behind = f"; {counted(len(unjudged), 'check')} could not judge" if unjudged else ""
    if doomed:
        return "critical", f"A job started like this is doomed: {doomed[0].sentence}"
    if examination.self_test and examination.self_test.state == "failed":
        return "critical", f"The self-test failed{behind}."
    if worse:
        return (
            "critical" if grave else "warning",
            f"{counted(len(worse), 'thing')} to mend{behind}.",
        )
    judged = [one for one in examination.checks if one.state == "fine"]
    if any(one.decisive for one in unjudged) or not (found or judged):
        return "unknown", f"Nothing wrong was seen{behind}."
    if found:
        return "remark", f"Nothing is wrong, {counted(len(found), 'remark')}{behind}."
    return "good", f"Nothing is wrong, by {counted(len(judged), 'check')}{behind}."


def _symptom(one: Symptom, width: int) -> list[Text]:
    severity = one.severity.value
    lead = Text.assemble((MARKS[severity], _STYLES[severity]), " ")
    lines = flow(sentence(one.sentence, one.kind), width, lead)
    evidence = [
        Text.assemble((f"{plain(item.label)} ", "dim"), cell_text(item.value, item.unit))
        for item in one.evidence
    ]
    evidence += [
        Text.assemble(("limit ", "dim"), threshold_text(limit), (f" ({limit.source})", "dim"))
        for limit in one.thresholds
    ]
    if evidence:
        pieces = [word for phrase in dotted(evidence) for word in _pieces(phrase)]
        lines += flow(pieces, width, Text("    "))
    return [*lines, *flow(words(one.action), width, Text("  → "))]


def _pieces(phrase: Text) -> list[Text]:
    return list(phrase.split(" "))


def _rest(title: str, state: str, checks: Iterable[CheckResult], width: int) -> list[Text]:
    rows = [one for one in checks if one.state == state]
    lines = [Text(title, "bold")] if rows else []
    for one in rows:
        lines += flow(words(f"{one.id}: {one.said}"), width, Text("  "), hang=4)
    return lines


def _moot(checks: Iterable[CheckResult], width: int) -> list[Text]:
    """Name the questions that do not arise, each reason once."""
    reasons: dict[str, list[str]] = {}
    for one in checks:
        if one.state == "not_applicable":
            reasons.setdefault(one.said, []).append(one.id)
    lines = [Text("Does not apply", "dim")] if reasons else []
    for why, ids in reasons.items():
        text = f"{', '.join(ids)}: {why}"
        lines += flow(words(text), width, Text("  "), style="dim", hang=4)
    return lines


def _self_test(test: SelfTest, width: int) -> list[Text]:
    mark = {"passed": "good", "failed": "critical", "not_run": "unknown"}[test.state]
    said = {
        "passed": "Matrix products are right",
        "failed": "The self-test failed",
        "not_run": "The self-test could not be run",
    }[test.state]
    lead = Text.assemble((MARKS[mark], _STYLES[mark]), " ")
    lines = flow(words(f"{said}{f': {test.why}' if test.why else ''}."), width, lead, style="bold")
    if test.products:
        rows: tuple[dict[str, Cell], ...] = tuple(
            {
                "library": one.library,
                "precision": one.precision,
                "size": one.size,
                "rate": one.flop_per_s,
                "peak": one.peak_percent,
                "error": None if one.error is None else f"{one.error:.0e}",
            }
            for one in test.products
        )
        table = Table(
            key="self-test",
            title=test.products[0].device,
            columns=_COLUMNS,
            rows=rows,
            shown=tuple(range(len(rows))),
        )
        lines += table_lines(table, width)
    return lines
