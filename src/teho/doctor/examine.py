"""Runs the checks on a snapshot, and gives the verdict and the exit code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timezone

import msgspec

from teho.config.toml import did_you_mean
from teho.doctor.checks import CHECKS
from teho.doctor.outcome import Check, NoProblem
from teho.doctor.snapshot import Python, Snapshot
from teho.errors import InputError
from teho.model.doctor import CheckResult, Examination, Symptom
from teho.model.document import VerdictSeverity
from teho.model.finding import Severity
from teho.units import counted

__all__ = ["chosen", "doomed", "examine", "exit_code", "symptoms_of", "verdict_of"]

_ORDER = list(Severity)


def chosen(ids: Collection[str]) -> tuple[Check, ...]:
    """Return the checks with these ids, or all checks if no id is given.

    Raises:
        InputError: an id is unknown.
    """
    known = {check.id: check for check in CHECKS}
    for id_ in ids:
        if id_ not in known:
            raise InputError(f"--only {id_}: there is no such check{did_you_mean(id_, known)}")
    return tuple(check for check in CHECKS if not ids or check.id in ids)


def examine(snapshot: Snapshot, checks: Sequence[Check], wall_s: float) -> Examination:
    """Return the results of some checks.

    Args:
        snapshot: facts about the machine.
        checks: from `chosen`.
        wall_s: time that the snapshot took.
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
    )


def _checked(check: Check, snapshot: Snapshot) -> CheckResult:
    outcome = check.judge(snapshot)
    answer = outcome if isinstance(outcome, NoProblem) else NoProblem("found", "")
    found = [] if isinstance(outcome, NoProblem) else outcome
    return CheckResult(
        id=check.id,
        about=check.about,
        decisive=check.decisive,
        state=answer.state,
        result=answer.text,
        symptoms=tuple(
            msgspec.structs.replace(one, kind=check.id)
            for one in ([found] if isinstance(found, Symptom) else found)
        ),
    )


def symptoms_of(examination: Examination) -> list[Symptom]:
    """Return all problems, the worst first. Fatal problems come before all others."""
    found = [one for checked in examination.checks for one in checked.symptoms]
    return sorted(found, key=lambda one: (not one.is_fatal, _ORDER.index(one.severity)))


def doomed(examination: Examination) -> list[Symptom]:
    """Return the problems because of which a job cannot do what it was started for."""
    return [one for one in symptoms_of(examination) if one.is_fatal]


def exit_code(examination: Examination) -> int:
    """Return 1 if there is a warning or a critical problem, or the self-test failed.

    Otherwise 2 if the self-test, or a check that may be fatal, could not judge. Otherwise 0.
    """
    test = examination.self_test
    worse = any(one.severity is not Severity.REMARK for one in symptoms_of(examination))
    if worse or (test and test.state == "failed"):
        return 1
    unsure = any(one.decisive and one.state == "abstained" for one in examination.checks)
    return 2 if unsure or (test and test.state == "not_run") else 0


def verdict_of(examination: Examination) -> tuple[VerdictSeverity, str]:
    """Return the severity and the sentence of the verdict."""
    found = symptoms_of(examination)
    worse = [one for one in found if one.severity is not Severity.REMARK]
    unjudged = [one for one in examination.checks if one.state == "abstained"]
    fine = [one for one in examination.checks if one.state == "fine"]
    test = examination.self_test
    end = f". {counted(len(unjudged), 'check')} gave no result." if unjudged else "."
    if found and found[0].is_fatal:
        return "critical", f"If you start a job here now, it will fail: {found[0].sentence}"
    if test and test.state == "failed":
        return "critical", f"The self-test failed{end}"
    if worse:
        is_critical = worse[0].severity is Severity.CRITICAL
        found_words = f"{counted(len(worse), 'problem')} found{end}"
        return "critical" if is_critical else "warning", found_words
    if test and test.state == "not_run":
        return "unknown", f"The self-test could not be run: {test.why.rstrip('.')}{end}"
    if any(one.decisive for one in unjudged) or not (found or fine):
        return "unknown", f"No problem was found{end}"
    if found:
        return "remark", f"No problem was found, only {counted(len(found), 'remark')}{end}"
    return "good", f"{counted(len(fine), 'check')} passed{end}"
