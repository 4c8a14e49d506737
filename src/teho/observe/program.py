"""A program: how it is started, how it ended, and how to end like it."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

__all__ = ["CannotStart", "Outcome", "become", "die_like", "execute", "restore_signals"]


class CannotStart(Exception):  # noqa: N818 - it is an outcome, with the shell's exit code for it
    """The program could not be started; `exit_code` is the shell's: 127 or 126."""

    def __init__(self, command: str, number: int) -> None:
        """Explain an errno of exec as a shell would."""
        exists = "/" in command and os.path.exists(command)  # noqa: PTH110 - pathlib loads late
        self.exit_code = 127 if number in {errno.ENOENT, errno.ENOTDIR} and not exists else 126
        if number == errno.ENOENT:
            reason = "its interpreter does not exist" if exists else "command not found"
        elif number == errno.EACCES:
            reason = "not executable"
        else:
            reason = os.strerror(number)
        super().__init__(f"{command}: {reason}")


@dataclass
class Outcome:
    """How the program ended, and what went wrong with the recording."""

    elapsed_s: float
    exit_code: int | None
    signal: int | None
    cpu_s: float
    peak_process_bytes: int
    troubles: list[tuple[float, str]] = field(default_factory=list)


def restore_signals() -> None:
    """Undo what Python does to signals at its start."""
    # It ignores these two; programs expect to die of them.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def execute(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Become a command as execvp(3) does: a script without `#!` goes to the shell.

    Raises:
        OSError: it cannot be executed.
    """
    try:
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - it is the purpose
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    import shutil

    script = shutil.which(command[0], path=environment.get("PATH")) or command[0]
    os.execve("/bin/sh", ["sh", script, *command[1:]], dict(environment))  # noqa: S606


def become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Be a program from here on, as if we had never been.

    Raises:
        CannotStart: there is no such command, or it does not execute.
    """
    restore_signals()
    try:
        execute(command, environment)
    except (OSError, ValueError) as error:  # ValueError: a byte 0, or an empty name
        number = getattr(error, "errno", None) or errno.ENOENT
        raise CannotStart(command[0], number) from None


def die_like(outcome: Outcome) -> None:
    """End this process exactly as the program ended: same exit code, or same signal."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            stream.flush()
    if outcome.signal is None:
        os._exit(outcome.exit_code or 0)
    # The program has left its core dump, if it was to leave one; ours would only be in the way.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if outcome.signal not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(outcome.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {outcome.signal})
    os.kill(os.getpid(), outcome.signal)
    os._exit(128 + outcome.signal)
