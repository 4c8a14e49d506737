"""What tests import by name."""

from __future__ import annotations

import sys

TEHO = [sys.executable, "-m", "teho"]
"""The command under test, whatever is on the PATH."""
