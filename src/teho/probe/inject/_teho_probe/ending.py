"""Finds the exception that ended the program. Python leaves it in `sys` after printing it."""

from __future__ import annotations

import sys

from _teho_probe.lines import TYPE_CHECKING, described_place, is_library

if TYPE_CHECKING:
    from typing import Any

__all__ = ["last_exception"]

_LONGEST = 300
"""Maximum number of characters of a message."""
_SECRETS = ("://", "token", "key=", "secret", "passw", "auth", "bearer", "credential", "cookie")
_LONGEST_WORD = 24
"""A longer word of letters and digits may be a key."""


def last_exception() -> dict[str, Any] | None:
    """Return the exception, and the last place in the program's own code; None without one."""
    kind = getattr(sys, "last_type", None)
    if kind is None:
        return None
    module = getattr(kind, "__module__", "")
    name = kind.__name__ if module in ("builtins", "__main__") else module + "." + kind.__name__
    trace, place = getattr(sys, "last_traceback", None), None
    while trace is not None:
        code = trace.tb_frame.f_code
        if place is None or not is_library(code.co_filename):
            place = code, trace.tb_lasti
        trace = trace.tb_next
    message = _message(getattr(sys, "last_value", None))
    return {
        "exception": name + ": " + message if message else name,
        "at": described_place(*place) if place is not None else None,
    }


def _message(value: Any) -> str:
    """Return the first line of a message; empty if it may contain a secret."""
    try:
        text = str(value)[:_LONGEST].strip().partition("\n")[0]
    except Exception:  # `__str__` may be the program's own code
        return ""
    lower = text.lower()
    if any(one in lower for one in _SECRETS):
        return ""
    words = "".join(one if one.isalnum() or one in "_-" else " " for one in text).split()
    if any(len(one) > _LONGEST_WORD and any(map(str.isdigit, one)) for one in words):
        return ""
    return text
