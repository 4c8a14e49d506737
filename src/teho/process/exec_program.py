"""Replace this process by a program, with the shell's messages and exit codes on failure.

This module runs before the program in each of up to ten thousand tasks, so it imports very little.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

__all__ = ["CannotStart", "exec_program", "restore_signals"]


class CannotStart(Exception):  # noqa: N818 - it is an outcome, with the shell's exit code for it
    """The program could not be started; `exit_code` is the shell's: 127 or 126."""

    def __init__(self, exit_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def restore_signals() -> None:
    """Undo what Python does to signals at its start."""
    import _signal  # `signal` itself loads `enum`

    # Python ignores these two signals, but programs expect to be ended by them.
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def exec_program(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by a program.

    As in execvp(3), the shell runs a script without `#!`.

    Raises:
        CannotStart: the command does not exist, or cannot be executed.
    """
    try:
        restore_signals()
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - no shell is wanted
    except OSError as error:
        path = os.fsdecode(error.filename or command[0])
        if error.errno == errno.ENOEXEC and not _is_binary(path):
            exec_program(("/bin/sh", path, *command[1:]), environment)
        raise _explained(command[0], error, path) from None
    except ValueError as error:
        raise CannotStart(126, f"{command[0]!r}: {error}") from None  # such as a byte 0


def _explained(name: str, error: OSError, path: str) -> CannotStart:
    """Return why a program did not start. If its file exists, a missing file is its interpreter."""
    lacks = error.errno in {errno.ENOENT, errno.ENOTDIR}
    exists = "/" in path and os.path.exists(path)  # noqa: PTH110 - pathlib loads late
    if lacks:
        reason = "the file's interpreter does not exist" if exists else "command not found"
    elif error.errno == errno.EACCES:
        reason = "not executable"
    elif error.errno == errno.ENOEXEC:
        reason = "the file is built for another kind of machine"
    else:
        reason = os.strerror(error.errno or 0)
    return CannotStart(127 if lacks and not exists else 126, f"{name}: {reason}")


def _is_binary(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib loads late
            return b"\0" in file.read(128)
    except OSError:
        return True
