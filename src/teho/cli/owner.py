"""The owner of a recording."""

from __future__ import annotations

import pwd
from pathlib import Path

__all__ = ["owner_of"]


def owner_of(path: Path) -> str:
    """Return the user who owns a file: a name, a number without a name, or "" if not readable."""
    try:
        number = path.stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
