"""The command of this Teho, for processes that others start."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["own_path"]


def own_path() -> tuple[str, ...]:
    """Return the command of this Teho, because the PATH of a job may have another one or none."""
    found = Path(sys.executable).with_name("teho")
    return (str(found),) if found.exists() else (sys.executable, "-m", "teho")
