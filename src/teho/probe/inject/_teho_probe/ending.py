"""The exception that ends a program, as Python leaves it in `sys` when it has printed it."""

from __future__ import annotations

import sys

from _teho_probe.lines import TYPE_CHECKING, is_library, place_in_words

if TYPE_CHECKING:
    from typing import Any

__all__ = ["last_exception"]

_LONGEST = 300
"""Characters of a message."""
_SECRETS = ("://", "token", "key=", "secret", "passw", "auth", "bearer", "credential", "cookie")
_LONGEST_WORD = 24
"""Of letters and digits together: a longer one may be a key."""


def last_exception() -> dict[str, Any] | None:
    """Return what ended the program, and the last place of its own code; None if nothing did."""
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
        "at": place_in_words(*place) if place is not None else None,
    }


def _message(value: Any) -> str:
    """Return the first line of a message; empty if it may hold a secret."""
    try:
        text = str(value)[:_LONGEST].strip().partition("\n")[0]
    except Exception:  # it is the program's own code that says it
        return ""
    lower = text.lower()
    if any(one in lower for one in _SECRETS):
        return ""
    words = "".join(one if one.isalnum() or one in "_-" else " " for one in text).split()
    if any(len(one) > _LONGEST_WORD and any(map(str.isdigit, one)) for one in words):
        return ""
    return text
