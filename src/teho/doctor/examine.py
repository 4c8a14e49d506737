"""From a snapshot to an examination: every check, the worst first, and what the exit code is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timezone

from teho.config.toml import did_you_mean
from teho.doctor.checks import CHECKS
from teho.doctor.outcome import Check, Said
from teho.doctor.snapshot import Python, Snapshot
from teho.errors import InputError
from teho.model.doctor import CheckResult, Examination, SelfTest, Symptom
from teho.model.document import VerdictSeverity
from teho.model.finding import Severity
from teho.units import counted

__all__ = ["chosen", "doomed", "examine", "exit_code", "symptoms_of", "verdict_of"]

_ORDER = list(Severity)


def chosen(ids: Collection[str]) -> tuple[Check, ...]:
    """Return the checks of these ids, or all where none is named.

    Raises:
        InputError: there is no check of that id.
    """
    known = {check.ID: check for check in CHECKS}
    for id_ in ids:
        if id_ not in known:
            raise InputError(f"--only {id_}: no such check{did_you_mean(id_, known)}")
    return tuple(check for check in CHECKS if not ids or check.ID in ids)


def examine(
    snapshot: Snapshot, checks: Sequence[Check], wall_s: float, self_test: SelfTest | None = None
) -> Examination:
    """Judge a snapshot by some checks.

    Args:
        snapshot: what was seen.
        checks: of `chosen`.
        wall_s: how long it took to see it.
        self_test: what came of it.
    """
    return Examination(
        at=datetime.now(timezone.utc),
        host=snapshot.survey.host,
        cluster=snapshot.cluster.name if snapshot.cluster else "",
        scheduler=snapshot.allocation.scheduler,
        job_id=snapshot.allocation.job_id,
        python=snapshot.python.path if isinstance(snapshot.python, Python) else "",
        wall_s=wall_s,
        checks=tuple(_checked(check, snapshot) for check in checks),
        self_test=self_test,
    )


def _checked(check: Check, snapshot: Snapshot) -> CheckResult:
    outcome = check.check(snapshot)
    if isinstance(outcome, Said):
        return CheckResult(
            id=check.ID,
            about=check.ABOUT,
            decisive=check.DECISIVE,
            state=outcome.state,
            said=outcome.text,
        )
    return CheckResult(
        id=check.ID,
        about=check.ABOUT,
        decisive=check.DECISIVE,
        state="found",
        symptoms=tuple(outcome),
    )


def symptoms_of(examination: Examination) -> list[Symptom]:
    """Return everything that was found, the worst first; what dooms a job before all else."""
    found = [one for checked in examination.checks for one in checked.symptoms]
    return sorted(found, key=lambda one: (not one.dooms, _ORDER.index(one.severity)))


def doomed(examination: Examination) -> list[Symptom]:
    """Return why a job started here cannot do what it was started for."""
    return [one for one in symptoms_of(examination) if one.dooms]


def exit_code(examination: Examination) -> int:
    """Return 1 where a warning or worse was found, or the self-test failed.

    Else 2 where a check that may doom a job, or the self-test, could not judge; else 0.
    """
    test = examination.self_test
    worse = any(one.severity is not Severity.REMARK for one in symptoms_of(examination))
    if worse or (test and test.state == "failed"):
        return 1
    unsure = any(one.decisive and one.state == "abstained" for one in examination.checks)
    return 2 if unsure or (test and test.state == "not_run") else 0


def verdict_of(examination: Examination) -> tuple[VerdictSeverity, str]:
    """Return how it stands, and the sentence that matters first."""
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
    test = examination.self_test
    if test and test.state == "not_run":
        return "unknown", f"The self-test could not be run: {test.why.rstrip('.')}{behind}."
    judged = [one for one in examination.checks if one.state == "fine"]
    if any(one.decisive for one in unjudged) or not (found or judged):
        return "unknown", f"Nothing wrong was seen{behind}."
    if found:
        return "remark", f"Nothing is wrong, {counted(len(found), 'remark')}{behind}."
    return "good", f"Nothing is wrong, by {counted(len(judged), 'check')}{behind}."
