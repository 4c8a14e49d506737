"""Findings of the rules about a run."""

from __future__ import annotations

import enum
from typing import Union

import msgspec

from teho.model.missing import Missing

__all__ = [
    "Abstention",
    "Certainty",
    "Evidence",
    "Finding",
    "Lack",
    "Moments",
    "Severity",
    "Threshold",
]


class Severity(str, enum.Enum):
    """How serious a finding is, from the most serious to the least serious."""

    CRITICAL = "critical"
    """The allocation, or a large part of it, was wasted, or the run is in danger."""
    WARNING = "warning"
    """Time or money is lost."""
    REMARK = "remark"
    """Useful to know. The user may have intended what the rule found."""
    HINT = "hint"
    """What took much of the time, and how it may be faster. It may be what the program is for, so
    it is no problem; reports show it only on request."""


class Certainty(str, enum.Enum):
    """How sure a finding is."""

    SURE = "sure"
    """It is very unlikely that the signals have another meaning."""
    LIKELY = "likely"
    """The signals are near the threshold, or were recorded only for a short time."""
    POSSIBLE = "possible"
    """Another cause may lead to the same signals, or what was found may be intended."""


class Threshold(msgspec.Struct, frozen=True):
    """A limit that a rule uses, and its source."""

    value: float
    unit: str
    source: str


class Evidence(msgspec.Struct, frozen=True):
    """One figure behind a finding."""

    label: str
    value: Union[float, str, Missing]
    unit: str = ""


class Moments(msgspec.Struct, frozen=True):
    """When a metric showed what a finding says."""

    metric: str
    """Name of the metric, which is the key of its plot."""
    lines: tuple[str, ...]
    """Labels of the GPUs or nodes in the plot."""
    spans_s: tuple[tuple[float, float], ...]
    """Begin and end of each time, in seconds after the start of the program. In these times, the
    metric of at least one of the GPUs or nodes showed it. A time has at least the width of a time
    bin of the plot."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem or remark, with its evidence and the next step."""

    kind: str
    """Fixed name, such as `gpu_never_used`."""
    severity: Severity
    sentence: str
    """What was found, in one sentence."""
    evidence: tuple[Evidence, ...]
    thresholds: tuple[Threshold, ...]
    action: str
    """What to do next; commands are in backquotes and can be copied."""
    regain_percent: Union[tuple[float, float], None] = None
    """Estimated share of the run time that could be saved, in %: minimum and maximum; null if this
    share cannot be estimated."""
    certainty: Certainty = Certainty.SURE
    """How sure the finding is."""
    moments: Union[Moments, None] = None
    """When the run showed it; null if this is not known, or if it is about the whole run."""


class Lack(msgspec.Struct, frozen=True):
    """A figure that a rule needed and that was missing."""

    what: str
    """Name of the missing signal or figure."""
    where: str
    """GPUs or nodes without this figure."""
    why: str


class Abstention(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that gave no judgement, and what was missing."""

    kind: str
    lacked: str
    """The missing figures in words."""
    lacks: tuple[Lack, ...] = ()
    """The missing figures as a list."""
