"""What a rule says of a run."""

from __future__ import annotations

import enum
from typing import Union

import msgspec

from teho.model.missing import Missing

__all__ = ["Abstention", "Evidence", "Finding", "Lack", "Severity", "Threshold"]


class Severity(str, enum.Enum):
    """How much a finding matters, most first."""

    CRITICAL = "critical"
    """The allocation, or a good part of it, was wasted, or the run is in danger."""
    WARNING = "warning"
    """Time or money is being lost."""
    REMARK = "remark"
    """Worth knowing; may be as it should."""


class Threshold(msgspec.Struct, frozen=True):
    """A limit that a rule judges by, and where it comes from."""

    value: float
    unit: str
    source: str


class Evidence(msgspec.Struct, frozen=True):
    """One figure behind a finding."""

    label: str
    value: Union[float, str, Missing]
    unit: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong or worth knowing, with its proof and the next step."""

    kind: str
    """Stable name, such as `gpu_never_used`."""
    severity: Severity
    sentence: str
    """What was found, in one sentence."""
    evidence: tuple[Evidence, ...]
    thresholds: tuple[Threshold, ...]
    action: str
    """What to do next; commands stand in backquotes and can be copied."""
    regain_percent: Union[tuple[float, float], None] = None
    """Of the program's time: the least and the most that this cause could give back, by what was
    seen; None where nothing was seen that would tell."""


class Lack(msgspec.Struct, frozen=True):
    """Something that a rule looked for in vain."""

    what: str
    """The signal, or another figure."""
    where: str
    """GPUs or nodes."""
    why: str


class Abstention(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that could not judge, and what it lacked."""

    kind: str
    lacked: str
    """In words."""
    lacks: tuple[Lack, ...] = ()
    """The same, one by one."""
