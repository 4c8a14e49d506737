"""Missing values and their reasons. Missing is never zero."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Missing", "Reason"]


class Reason(str, enum.Enum):
    """Why a value is missing. Zero is not a missing value."""

    ABSENT = "absent"
    """The value cannot exist here, because the device, file or library is missing."""
    UNSUPPORTED = "unsupported"
    """The device or driver reports that it does not offer this value."""
    FORBIDDEN = "forbidden"
    """The value exists, but this user is not allowed to read it."""
    FAILED = "failed"
    """Reading the value failed: for example, a GPU was lost, or an answer was not readable."""
    UNRECORDED = "unrecorded"
    """The value was not sampled: the recorder had stopped, or the run was too short."""


class Missing(msgspec.Struct, frozen=True, tag="missing", tag_field="type"):
    """A missing value, with its reason."""

    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        words = {
            Reason.ABSENT: "none",
            Reason.UNSUPPORTED: "not offered",
            Reason.FORBIDDEN: "no permission",
            Reason.FAILED: "failed",
            Reason.UNRECORDED: "not recorded",
        }
        return words[self.reason]
