"""What a rule says of a run."""

from __future__ import annotations

import enum
from typing import Union

import msgspec

from teho.model.missing import Missing

__all__ = ["Abstention", "Evidence", "Finding", "Lack", "Severity", "Threshold"]


class Severity(str, enum.Enum):
    """How serious a finding is, most serious first."""

    CRITICAL = "critical"
    """The allocation, or a large part of it, was wasted, or the run is in danger."""
    WARNING = "warning"
    """Time or money is lost."""
    REMARK = "remark"
    """Good to know; it can be intended."""


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


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong or good to know, with its evidence and the next step."""

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
    """Share of the run time that could be saved: at least and at most, estimated from what was
    seen; null if it cannot be estimated."""


class Lack(msgspec.Struct, frozen=True):
    """Something that a rule needed and did not find."""

    what: str
    """The signal, or another figure."""
    where: str
    """GPUs or nodes."""
    why: str


class Abstention(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that could not judge, and what was missing."""

    kind: str
    lacked: str
    """In words."""
    lacks: tuple[Lack, ...] = ()
    """The same, one by one."""
