"""The exception that ended a Python program, read from what the recording kept of its output."""

from __future__ import annotations

import re
from pathlib import Path

from teho.config.privacy import masked_text
from teho.store.layout import output_file

__all__ = ["exception_in", "last_exception"]

_HEAD = "Traceback (most recent call last):"
_NAMED = re.compile(r"^[A-Za-z_][\w.]*(?:: .*)?$")
_LINES_AFTER = 20
"""If the program printed more lines after an exception, it went on: it had caught the exception."""
_SHOWN = 80
"""Characters of the line that are kept: a message can be as long as a page."""


def last_exception(recording: Path) -> str:
    """Return the last line of the traceback with which a program ended.

    Empty if its output was not kept (`teho run --keep-output`) or has no such traceback. Standard
    error is kept only if the program sends it to standard output.
    """
    try:
        kept = output_file(recording).read_bytes()
    except OSError:
        return ""
    return exception_in(kept.decode(errors="replace"))


def exception_in(printed: str) -> str:
    """Return the line that names the exception of the last traceback; empty if there is none."""
    lines = printed.splitlines()
    heads = [place for place, line in enumerate(lines) if line.strip() == _HEAD]
    if not heads:
        return ""
    for place in range(heads[-1] + 1, len(lines)):
        if _NAMED.match(lines[place]):
            went_on = len(lines) - place - 1 > _LINES_AFTER
            return "" if went_on else _short(masked_text(lines[place]))
    return ""


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1].rstrip()}…"
