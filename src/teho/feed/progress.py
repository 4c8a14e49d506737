"""One line on a terminal while data are loaded or packed; in a pipe, it prints nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Progress", "progress"]

_SILENT_S = 2.0
_EVERY_S = 0.2


class Progress:
    """A line such as `teho: packing, 12,000 of 50,000 samples`, from the second second on."""

    def __init__(self, doing: str, of: int | None, noun: str) -> None:
        self._doing, self._of, self._noun = doing, of, noun
        self._next_s = time.monotonic() + _SILENT_S
        self._is_shown = False

    def __call__(self, done: int) -> None:
        """Show how much is done."""
        now_s = time.monotonic()
        if now_s < self._next_s or not (sys.stderr and sys.stderr.isatty()):
            return
        self._next_s, self._is_shown = now_s + _EVERY_S, True
        of = f" of {self._of:,}" if self._of is not None else ""
        sys.stderr.write(f"\r\033[Kteho: {self._doing}, {done:,}{of} {self._noun}")
        sys.stderr.flush()

    def close(self) -> None:
        """Remove the line."""
        if self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


@contextmanager
def progress(doing: str, of: int | None, noun: str = "samples") -> Iterator[Progress]:
    """Show a line while the work inside takes longer than 2 s."""
    line = Progress(doing, of, noun)
    try:
        yield line
    finally:
        line.close()
