"""What `teho doctor` found as a document: problems first, then what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator

from teho.doctor.examine import symptoms_of, verdict_of
from teho.model.doctor import Examination, SelfTest
from teho.model.document import Cell, Column, Document, Fact, Item, Listing, Table
from teho.model.finding import Severity
from teho.show.cells import plain
from teho.version import __version__

__all__ = ["doctor_document", "problem_lines"]

_COLUMNS = (
    Column(key="library", label="Library"),
    Column(key="precision", label="Precision"),
    Column(key="size", label="Size"),
    Column(key="rate", label="Rate", unit="FLOP/s"),
    Column(key="peak", label="Of peak", unit="%"),
    Column(key="error", label="Error"),
)


def doctor_document(examination: Examination) -> Document:
    """Lay out what was found."""
    severity, verdict = verdict_of(examination)
    test = examination.self_test
    return Document(
        title=f"teho doctor · {examination.host}",
        verdict=verdict,
        verdict_severity=severity,
        facts=(
            Fact("host", "Host", examination.host),
            Fact("cluster", "Cluster", examination.cluster or None),
            Fact("job_id", "Job", examination.job_id),
            Fact("python", "Python", examination.python or None),
            Fact("wall_s", "Took", examination.wall_s, "s"),
            *([_self_test(test)] if test else []),
        ),
        findings=tuple(symptoms_of(examination)),
        tables=_products(test) if test and test.products else (),
        lists=(
            _checks("abstained", "Not judged", examination),
            _checks("fine", "Fine", examination),
            _moot(examination),
        ),
        teho_version=__version__,
    )


def problem_lines(examination: Examination) -> Iterator[str]:
    """Yield one line for each problem, with what to do; a remark is not a problem."""
    for one in symptoms_of(examination):
        if one.severity is not Severity.REMARK:
            word = "this job is doomed" if one.dooms else one.severity.value
            yield plain(f"{word}: {one.sentence} Next: {one.action} [{one.kind}]")


def _checks(state: str, title: str, examination: Examination) -> Listing:
    return Listing(
        key=state,
        title=title,
        items=tuple(
            Item(lead=one.id, text=one.said) for one in examination.checks if one.state == state
        ),
        level="default" if state == "abstained" else "why",
    )


def _moot(examination: Examination) -> Listing:
    """Name the checks that do not apply, each reason once."""
    reasons: dict[str, list[str]] = {}
    for one in examination.checks:
        if one.state == "not_applicable":
            reasons.setdefault(one.said, []).append(one.id)
    items = tuple(Item(lead=", ".join(ids), text=why) for why, ids in reasons.items())
    return Listing(key="not_applicable", title="Does not apply", items=items, level="why")


def _self_test(test: SelfTest) -> Fact:
    said = {
        "passed": "matrix products are right",
        "failed": "it failed",
        "not_run": "it could not be run",
    }[test.state]
    return Fact("self_test", "Self-test", said, note=test.why)


def _products(test: SelfTest) -> tuple[Table, ...]:
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
    return (
        Table(
            key="products",
            title=f"Matrix products on {test.products[0].device}",
            columns=_COLUMNS,
            rows=rows,
            shown=tuple(range(len(rows))),
        ),
    )
