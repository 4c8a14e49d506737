"""What a check may say, and what a check is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Union

import msgspec

from teho.doctor.snapshot import Snapshot
from teho.model.doctor import State, Symptom
from teho.model.finding import Evidence, Severity, Threshold

__all__ = ["Check", "Outcome", "Said", "fine", "moot", "spared", "symptom", "unknown"]


class Said(NamedTuple):
    """That nothing was found, and why."""

    state: State
    text: str


Outcome = Union[Said, list[Symptom]]
"""What is wrong, one thing or more; else why there is nothing."""


class Check(Protocol):
    """A module of `checks/`."""

    ID: str
    """Stable; what `--only` takes."""
    ABOUT: str
    """What it looks at, in a few words."""
    DECISIVE: bool
    """Whether what it finds may doom a job."""

    def check(self, snapshot: Snapshot) -> Outcome:
        """Judge the snapshot, and nothing beside it."""
        ...


def fine(text: str) -> Said:
    """Say that it is as it should be, with what was seen."""
    return Said("fine", text)


def unknown(text: str) -> Said:
    """Say what could not be had."""
    return Said("abstained", text)


def moot(text: str) -> Said:
    """Say why the question does not arise."""
    return Said("not_applicable", text)


def symptom(
    check: str,
    severity: Severity,
    sentence: str,
    action: str,
    *evidence: tuple[str, Union[float, str], str],
    thresholds: Sequence[Threshold] = (),
    dooms: bool = False,
) -> Symptom:
    """Build what a check found.

    Args:
        check: its id.
        severity: how much it matters.
        sentence: what is wrong.
        action: what to do; commands are in backquotes.
        evidence: label, value and unit of each figure behind it.
        thresholds: that it was judged by.
        dooms: whether the job cannot do what it was started for.
    """
    return Symptom(
        kind=check,
        severity=severity,
        sentence=sentence,
        evidence=tuple(Evidence(*one) for one in evidence),
        thresholds=tuple(thresholds),
        action=action,
        dooms=dooms,
    )


def spared(found: Sequence[Symptom], frameworks: int) -> list[Symptom]:
    """Return what is wrong with frameworks; it dooms no job where another one is well.

    Args:
        found: one for each framework that is not well.
        frameworks: how many there are that are for GPUs.
    """
    if len(found) == frameworks:
        return list(found)
    return [msgspec.structs.replace(one, dooms=False) for one in found]
