"""Why a value is not there. Missing is never zero."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Missing", "Reason"]


class Reason(str, enum.Enum):
    """The ways in which a value can be missing; zero is none of them."""

    ABSENT = "absent"
    """Nothing here could have it: no such device, file or library."""
    UNSUPPORTED = "unsupported"
    """The device or driver is there and says that it does not offer this."""
    FORBIDDEN = "forbidden"
    """It exists, and this user may not read it."""
    FAILED = "failed"
    """It should have worked and did not: a lost GPU, an unreadable answer."""
    UNRECORDED = "unrecorded"
    """Nobody looked: the recorder had stopped, or the run was too short."""


class Missing(msgspec.Struct, frozen=True, tag="missing", tag_field="type"):
    """A value that is not there, with the reason."""

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
