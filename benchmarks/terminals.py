"""Programs in a terminal of a known size, and the text that they write."""

from __future__ import annotations

import os
import pty
import re
import struct
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from termios import TIOCSWINSZ

__all__ = ["COLUMNS", "LINES", "in_terminal", "plain"]

COLUMNS, LINES = 120, 40
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[=>78])"
)


def in_terminal(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, int]:
    """Start a program in a terminal; return its pid and the descriptor of the terminal."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], list(argv), {**env, "TERM": "xterm-256color"})
    ioctl(descriptor, TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    return pid, descriptor


def plain(written: bytes) -> str:
    """Return what a program has written, without the sequences that control the terminal."""
    return _ESCAPES.sub("", written.decode(errors="replace"))
