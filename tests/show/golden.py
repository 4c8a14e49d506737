"""The folder of the expected reports, and their comparison."""

from __future__ import annotations

from pathlib import Path

from support import check_golden as check

__all__ = ["FOLDER", "ROOT", "check"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "show"
