"""Calls in a separate process, with a deadline.

A thread is not enough: if a thread hangs inside the kernel, in a driver or a file system, its
process cannot end.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from teho.errors import InputError, TehoError
from teho.process.child import fork_child, silence_streams, wait_for_exit

__all__ = ["IsolatedCall", "NoAnswer", "answering", "executing"]

_T = TypeVar("_T")
_ERROR = b"!"
"""First byte of an error. JSON never begins with this byte."""
_GRACE_S = 5
"""Seconds after the deadline at which a call's process ends itself, if its parent is gone."""
_KILLED_S = 5.0
"""Longest wait for the end of a process that was killed."""
_asking: dict[int, int] = {}
"""Process of each unfinished call -> the process that started the call."""


class NoAnswer(msgspec.Struct, frozen=True):
    """A call without an answer."""

    why: str
    """A sentence that names what was asked."""


class IsolatedCall:
    """A call that starts at once. Its process and all processes that it starts are one group.

    Args:
        subject: what is asked, for messages: `the NVIDIA driver`.
        ask: runs in the new process; writes the answer, as JSON, to the pipe that it is given.
        deadline_s: seconds until the call counts as hung.
    """

    def __init__(self, subject: str, ask: Callable[[int], None], deadline_s: float) -> None:
        self._subject = subject
        self._deadline_s = deadline_s
        self._until_s = time.monotonic() + deadline_s
        self._pipe, write_end = os.pipe()
        # A Ctrl-C here would leave a process that is not registered, or not a group yet.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            end_s = math.ceil(deadline_s) + _GRACE_S
            self._pid = fork_child(partial(_ask, subject, ask, write_end, mask, end_s))
            with contextlib.suppress(OSError):
                os.setpgid(self._pid, self._pid)
            _asking[self._pid] = os.getpid()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(write_end)

    def allow(self, seconds: float) -> None:
        """Count the call as hung this long from now on, if it has waited for its question.

        The time that was given at the start must also cover the wait and this time.
        """
        self._deadline_s = seconds
        self._until_s = time.monotonic() + seconds

    def end(self) -> None:
        """End the call without its answer."""
        _end(self._pid)
        os.close(self._pipe)
        self._exit_code(until_s=time.monotonic() + _KILLED_S)

    def answer(self, form: type[_T]) -> _T | NoAnswer:
        """Wait for the answer, and decode it from JSON; see `output`."""
        data = self.output()
        if isinstance(data, NoAnswer):
            return data
        try:
            return msgspec.json.decode(data, type=form)
        except msgspec.MsgspecError:
            shown = data[:60].decode(errors="replace")
            return NoAnswer(f"{self._subject} answered {shown!r}, which Teho does not understand")

    def output(self) -> bytes | NoAnswer:
        """Wait for the output. After the deadline the process group is killed."""
        data, in_time = self._listen()
        if not in_time:
            _end(self._pid)
        code = self._exit_code(until_s=self._until_s if in_time else 0.0)
        if not in_time:
            why = f"{self._subject} did not answer within {self._deadline_s:g} s"
        elif data.startswith(_ERROR):
            why = data[1:].decode(errors="replace")
        elif code < 0:
            why = (
                f"the process that asked {self._subject} was ended by {signal.Signals(-code).name}"
            )
        elif code and not data:
            why = f"the process that asked {self._subject} failed: {code}"
        else:
            return data
        return NoAnswer(why)

    def _exit_code(self, until_s: float) -> int:
        """Return the exit code; 0 if the process has not ended yet, perhaps inside a driver."""
        status = wait_for_exit(self._pid, until_s)
        if status is None:
            return 0
        del _asking[self._pid]
        return os.waitstatus_to_exitcode(status)

    def _listen(self) -> tuple[bytes, bool]:
        data = b""
        try:
            while True:
                left_s = max(0.0, self._until_s - time.monotonic())
                if not select.select([self._pipe], [], [], left_s)[0]:
                    return data, False
                part = os.read(self._pipe, 1 << 16)
                if not part:
                    return data, True
                data += part
        finally:
            os.close(self._pipe)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@atexit.register
def _end_all() -> None:
    """End all unfinished calls, because Ctrl-C does not reach other process groups."""
    for group, asker in tuple(_asking.items()):
        if asker == os.getpid():
            _end(group)


def answering(question: Callable[[], object]) -> Callable[[int], None]:
    """Return an `ask` for `IsolatedCall` that calls a function and writes its result."""

    def ask(write_end: int) -> None:
        data = msgspec.json.encode(question())
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(data)

    return ask


def executing(
    command: Sequence[str], environment: Mapping[str, str], stdin: int | None = None
) -> Callable[[int], None]:
    """Return an `ask` for `IsolatedCall` that executes a command; its output is the answer.

    Args:
        command: the program and its arguments.
        environment: the command's.
        stdin: descriptor of its input; None: it has no input.
    """

    def ask(write_end: int) -> None:
        os.dup2(write_end, 1)
        os.close(write_end)
        if stdin is not None:
            os.dup2(stdin, 0)
        try:
            os.execvpe(command[0], list(command), environment)  # noqa: S606 - no shell is wanted
        except FileNotFoundError:
            raise InputError(f"no command {command[0]} here") from None

    return ask


def _ask(
    subject: str,
    ask: Callable[[int], None],
    write_end: int,
    mask: Collection[int],
    end_s: int,
) -> None:
    """Run in the new process: ask, and write the answer, or `_ERROR` and the reason."""
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    signal.alarm(end_s)
    os.setpgid(0, 0)
    # Text that a driver's library prints is not a part of the answer. A hung process must not keep
    # the terminal or a pipe open.
    silence_streams()
    error_end = os.dup(write_end)
    try:
        ask(write_end)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        os.write(error_end, _ERROR + f"{named}{error.strerror or error}".encode())
        raise
    except TehoError as error:
        os.write(error_end, _ERROR + error.found.encode())
        raise
    except Exception as error:
        os.write(error_end, _ERROR + f"asking {subject} failed: {error!r}".encode())
        raise
