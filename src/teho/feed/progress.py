"""One line on a terminal while data are loaded or packed; in a pipe, it prints nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

_SILENT_S = 2.0
_EVERY_S = 0.2


@contextmanager
def progress(doing: str, count: int) -> Iterator[Callable[[int], None]]:
    """Show a line such as `teho: packing, 12,000 of 50,000 samples`, from 2 s on.

    Args:
        doing: the work.
        count: number of all samples.

    Yields:
        A function that gets the number of samples that are done.
    """
    next_s, is_shown = time.monotonic() + _SILENT_S, False

    def show(done: int) -> None:
        nonlocal next_s, is_shown
        now_s = time.monotonic()
        if now_s >= next_s and sys.stderr and sys.stderr.isatty():
            next_s, is_shown = now_s + _EVERY_S, True
            sys.stderr.write(f"\r\033[Kteho: {doing}, {done:,} of {count:,} samples")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
