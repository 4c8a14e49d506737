"""What a terminal shows while a command works; in a pipe, all of this prints nothing."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from teho.cli import say
from teho.units import format_duration

__all__ = ["ProgressLine", "StatusLine", "elapsed_line", "hint_if_slow"]

_SEALING_CALLS = 20
_TICK_S = 1.0


class ProgressLine:
    """Prints one line if the recording is not packed within 2 s; called every 0.1 s."""

    def __init__(self, *, quiet: bool) -> None:
        self._calls = 0
        self._shown = sys.stderr.isatty() and not quiet

    def __call__(self) -> None:
        """Count one call, and print the line if the recording takes long."""
        self._calls += 1
        if self._calls == _SEALING_CALLS and self._shown:
            say("finishing the recording…")


class StatusLine:
    """One line of a terminal that each new text replaces."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._columns = shutil.get_terminal_size((80, 24)).columns - 1

    def __call__(self, text: str) -> None:
        """Replace the line; an empty text removes it."""
        if self._shown:
            sys.stderr.write(f"\r\033[K{text[: self._columns]}")
            sys.stderr.flush()


@contextmanager
def elapsed_line(for_s: float) -> Iterator[None]:
    """Show every second how much of the time has passed, also during the first run.

    Args:
        for_s: the longest time in s.
    """
    line, ended, began_s = StatusLine(), threading.Event(), time.monotonic()

    def tick() -> None:
        while not ended.wait(_TICK_S):
            passed_s = round(time.monotonic() - began_s)
            line(
                f"teho: measuring, {format_duration(passed_s)} of at most {format_duration(for_s)}"
            )

    thread = threading.Thread(target=tick, daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()
        line("")


@contextmanager
def hint_if_slow(text: str, *, after_s: float = 2.0, always: bool = False) -> Iterator[None]:
    """Print a line if the work inside takes long.

    Args:
        text: what the command waits for.
        after_s: the time in s after which the line is printed.
        always: whether to print it in a pipe too.
    """
    timer = threading.Timer(after_s, say, [text])
    timer.daemon = True
    if always or sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
