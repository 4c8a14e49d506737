"""The owner of a recording, and the names of users."""

from __future__ import annotations

import pwd
from functools import cache
from pathlib import Path

__all__ = ["owner_of", "user_name"]


def owner_of(path: Path) -> str:
    """Return the user who owns a file: a name, a number without a name, or "" if not readable."""
    try:
        return user_name(path.stat().st_uid)
    except OSError:
        return ""


@cache
def user_name(number: int) -> str:
    """Return the name of a user on this machine; the number of a user without a name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
