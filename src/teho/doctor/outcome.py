"""What a check may return, and what a check is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import NamedTuple, Union

import msgspec

from teho.doctor.snapshot import Python, Snapshot
from teho.model.doctor import State, Symptom
from teho.model.finding import Evidence, Severity, Threshold
from teho.model.missing import Missing

__all__ = [
    "Check",
    "NoProblem",
    "Outcome",
    "critical",
    "fine",
    "needs_python",
    "not_applicable",
    "remark",
    "symptom",
    "unknown",
    "warning",
    "without_fatal",
]


class NoProblem(NamedTuple):
    """A check found no problem, for this reason."""

    state: State
    text: str


Outcome = Union[NoProblem, Symptom, list[Symptom]]
"""One problem or several; otherwise the reason why there is none."""


class Check(NamedTuple):
    """One file of `checks/`."""

    id: str
    """Stable. `--only` takes it."""
    about: str
    """What the check compares, in a few words."""
    decisive: bool
    """Whether its problems may be fatal for a job."""
    judge: Callable[[Snapshot], Outcome]
    """Judge only the snapshot."""


fine = partial(NoProblem, "fine")
"""Everything is as it should be: what was seen."""
unknown = partial(NoProblem, "abstained")
"""The check cannot judge: the information that is missing."""
not_applicable = partial(NoProblem, "not_applicable")
"""The check does not apply here: the reason."""


def symptom(
    severity: Severity,
    sentence: str,
    action: str,
    *evidence: tuple[str, Union[float, str], str],
    thresholds: Sequence[Threshold] = (),
    is_fatal: bool = False,
) -> Symptom:
    """Return a problem. `examine` adds the id of its check.

    Args:
        severity: how much it matters.
        sentence: what is wrong.
        action: what to do. Commands are in backquotes.
        evidence: label, value and unit of each figure.
        thresholds: with which the figures were compared.
        is_fatal: whether the job cannot do what it was started for.
    """
    return Symptom(
        kind="",
        severity=severity,
        sentence=sentence,
        evidence=tuple(Evidence(*one) for one in evidence),
        thresholds=tuple(thresholds),
        action=action,
        is_fatal=is_fatal,
    )


critical = partial(symptom, Severity.CRITICAL)
warning = partial(symptom, Severity.WARNING)
remark = partial(symptom, Severity.REMARK)


def needs_python(
    judge: Callable[[Snapshot, Python], Outcome],
) -> Callable[[Snapshot], Outcome]:
    """Return a check that calls `judge` if the user's Python answered."""

    @wraps(judge)
    def check(snapshot: Snapshot) -> Outcome:
        if isinstance(snapshot.python, Missing):
            return unknown(f"Teho cannot read the Python installation: {snapshot.python.detail}")
        return judge(snapshot, snapshot.python)

    return check


def without_fatal(found: Sequence[Symptom], frameworks: int) -> list[Symptom]:
    """Return problems of frameworks. They are not fatal if another framework works.

    Args:
        found: one for each framework that has a problem.
        frameworks: number of frameworks for GPUs.
    """
    if len(found) == frameworks:
        return list(found)
    return [msgspec.structs.replace(one, is_fatal=False) for one in found]
