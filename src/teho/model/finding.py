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
    """A part of the program that took much of the time, and how this part may become faster. The
    part may be the real work of the program, so a hint is not a problem. Reports show hints only on
    request."""


class Certainty(str, enum.Enum):
    """How sure a finding is."""

    SURE = "sure"
    """It is very unlikely that something else caused the recorded values."""
    LIKELY = "likely"
    """The recorded values are near the threshold, or are only from a short time."""
    POSSIBLE = "possible"
    """Something else may have caused the recorded values, or the user may have intended what the
    rule found."""


class Threshold(msgspec.Struct, frozen=True):
    """The value at which a rule begins to report a finding, and the source of this value."""

    value: float
    unit: str
    source: str


class Evidence(msgspec.Struct, frozen=True):
    """One figure that supports a finding."""

    label: str
    value: Union[float, str, Missing]
    unit: str = ""


class Moments(msgspec.Struct, frozen=True):
    """The times at which a metric showed the problem of a finding."""

    metric: str
    """Name of the metric. The plot of this metric has this name as its `key`."""
    lines: tuple[str, ...]
    """Labels of the GPUs or nodes in the plot."""
    spans_s: tuple[tuple[float, float], ...]
    """Begin and end of each time, in seconds after the start of the program. In these times, the
    metric of at least one of the GPUs or nodes showed the problem. Each time is at least as long as
    a time bin of the plot."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem or remark, with its evidence and with advice."""

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
    """The times at which the run showed the problem; null if these times are not known, or if the
    finding is about the whole run."""


class Lack(msgspec.Struct, frozen=True):
    """A figure that a rule needed and that was missing."""

    what: str
    """Name of the missing signal or figure."""
    where: str
    """GPUs or nodes without this figure."""
    why: str


class Abstention(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that could not judge the run, and the figures that were missing."""

    kind: str
    lacked: str
    """The missing figures in words."""
    lacks: tuple[Lack, ...] = ()
    """The missing figures as a list."""
