"""Standard output of a command line: closed streams, a reader that has ended, a full disk."""

from __future__ import annotations

import io
import os
import sys

from teho.cli import say

TYPE_CHECKING = False  # True for type checkers; `typing` would slow down `teho --help`
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["exit_code_of", "open_streams"]


def open_streams() -> None:
    """Open /dev/null for closed streams (`>&-`), so no other file gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, False)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # It stays open to the end. `pathlib` would make the start of each command longer.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal gets ? instead of ✗


def exit_code_of(write: Callable[[], object]) -> int:
    """Call a function that writes to standard output, and return the exit code.

    The exit code is the function's result, if this is an `int`. An error of standard output is
    printed as one line.
    """
    try:
        result = write()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe.
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        say(str(error))
        return 2
    return result if isinstance(result, int) else 0


def _discard_output() -> None:
    """Discard the buffered output: Python would report the error again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
