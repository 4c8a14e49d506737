"""One line on a terminal when sealing takes long enough to be noticed."""

from __future__ import annotations

import sys

from teho.cli import say

__all__ = ["ProgressLine"]


class ProgressLine:
    """Called every 0.1 s while a recording is sealed."""

    def __init__(self, *, quiet: bool) -> None:
        """Begin to count; nothing is printed where nobody looks or `quiet`."""
        self._calls = 0
        self._shown = sys.stderr.isatty() and not quiet

    def __call__(self) -> None:
        """Say once what takes so long."""
        self._calls += 1
        if self._calls == 20 and self._shown:
            say("sealing the recording…")
