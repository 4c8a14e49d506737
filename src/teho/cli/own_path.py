"""Where this very Teho lies, for what it has others start."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["own_path"]


def own_path() -> tuple[str, ...]:
    """Return the path of this very Teho: a job's modules may put another one first, or none."""
    beside = Path(sys.executable).with_name("teho")
    return (str(beside),) if beside.exists() else (sys.executable, "-m", "teho")
