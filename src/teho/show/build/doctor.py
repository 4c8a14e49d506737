"""The result of `teho doctor` as a document: problems first, then what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator

from teho.doctor.examine import symptoms_of, verdict_of
from teho.model.doctor import Examination, SelfTest
from teho.model.document import Document, Fact, Item, Listing, Table
from teho.model.finding import Severity
from teho.show.build.layout import column, document, listing, table
from teho.show.cells import plain

__all__ = ["doctor_document", "problem_lines"]


def doctor_document(examination: Examination) -> Document:
    """Lay out the problems that were found, and the other checks."""
    severity, verdict = verdict_of(examination)
    test = examination.self_test
    return document(
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
        tables=(_products(test),) if test and test.products else (),
        lists=(
            _checks("abstained", "Not judged", examination),
            _checks("fine", "Fine", examination),
            _not_applicable(examination),
        ),
    )


def problem_lines(examination: Examination) -> Iterator[str]:
    """Yield one line for each problem with its next step; a remark is not a problem."""
    for one in symptoms_of(examination):
        if one.severity is not Severity.REMARK:
            word = "this job will fail" if one.is_fatal else one.severity.value
            yield plain(f"{word}: {one.sentence} Next: {one.action} [{one.kind}]")


def _checks(state: str, title: str, examination: Examination) -> Listing:
    items = [Item(lead=one.id, text=one.result) for one in examination.checks if one.state == state]
    return listing(state, title, items, "default" if state == "abstained" else "why")


def _not_applicable(examination: Examination) -> Listing:
    """List the checks that do not apply, by reason."""
    reasons: dict[str, list[str]] = {}
    for one in examination.checks:
        if one.state == "not_applicable":
            reasons.setdefault(one.result, []).append(one.id)
    items = [Item(lead=", ".join(ids), text=why) for why, ids in reasons.items()]
    return listing("not_applicable", "Does not apply", items, "why")


def _self_test(test: SelfTest) -> Fact:
    result = {
        "passed": "matrix products are correct",
        "failed": "the test failed",
        "not_run": "the test could not be run",
    }[test.state]
    return Fact("self_test", "Self-test", result, note=test.why)


def _products(test: SelfTest) -> Table:
    return table(
        "products",
        f"Matrix products on {test.products[0].device}",
        test.products,
        column("library", "Library", lambda one: one.library),
        column("precision", "Precision", lambda one: one.precision),
        column("size", "Size", lambda one: one.size),
        column("rate", "Rate", lambda one: one.flop_per_s, unit="FLOP/s"),
        column("peak", "Of peak", lambda one: one.peak_percent, unit="%"),
        column("error", "Error", lambda one: None if one.error is None else f"{one.error:.0e}"),
    )
