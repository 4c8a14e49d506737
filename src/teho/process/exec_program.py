"""Becoming another program, with the shell's words and exit codes where that fails.

It stands between ten thousand tasks and their programs, and loads next to nothing.
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

    # It ignores these two; programs expect to die of them.
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def exec_program(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Be a program from here on, as if we had never been.

    As execvp(3) has it, a script without `#!` goes to the shell.

    Raises:
        CannotStart: there is no such command, or it does not execute.
    """
    try:
        restore_signals()
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - it is the purpose
    except OSError as error:
        path = os.fsdecode(error.filename or command[0])
        if error.errno == errno.ENOEXEC and not _is_binary(path):
            exec_program(("/bin/sh", path, *command[1:]), environment)
        raise _explained(command[0], error, path) from None
    except ValueError as error:
        raise CannotStart(126, f"{command[0]!r}: {error}") from None  # such as a byte 0


def _explained(name: str, error: OSError, path: str) -> CannotStart:
    """Return why there is no program; a program that is there cannot itself be what lacks."""
    lacks = error.errno in {errno.ENOENT, errno.ENOTDIR}
    exists = "/" in path and os.path.exists(path)  # noqa: PTH110 - pathlib loads late
    if lacks:
        reason = "its interpreter does not exist" if exists else "command not found"
    elif error.errno == errno.EACCES:
        reason = "not executable"
    elif error.errno == errno.ENOEXEC:
        reason = "built for another kind of machine"
    else:
        reason = os.strerror(error.errno or 0)
    return CannotStart(127 if lacks and not exists else 126, f"{name}: {reason}")


def _is_binary(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib loads late
            return b"\0" in file.read(128)
    except OSError:
        return True
