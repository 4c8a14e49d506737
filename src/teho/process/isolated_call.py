"""A question asked in a process of its own, which is given up where it does not answer in time.

A thread would not do: one that hangs inside the kernel, in a driver or a file system, keeps its
whole process from ending.
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
from teho.process.child import fork_child, wait_for_exit

__all__ = ["IsolatedCall", "NoAnswer", "answering", "executing"]

_T = TypeVar("_T")
_ERROR = b"!"
"""What an answer that is an error begins with; JSON never does."""
_GRACE_S = 5
"""After its time an asking process ends by itself, where nobody is left to end it."""
_asking: dict[int, int] = {}
"""Asking processes whose end was not seen -> the process that they ask for."""


class NoAnswer(msgspec.Struct, frozen=True):
    """A call that gave no answer."""

    why: str
    """A sentence that names who was asked."""


class IsolatedCall:
    """One question, begun at once; its process, and all that it starts, is one process group.

    Args:
        of: who is asked, as a sentence calls it: `the NVIDIA driver`.
        ask: called in that process with the pipe to write the answer to, as JSON.
        deadline_s: when it counts as hung.
    """

    def __init__(self, of: str, ask: Callable[[int], None], deadline_s: float) -> None:
        self._of = of
        self._deadline_s = deadline_s
        self._until_s = time.monotonic() + deadline_s
        self._pipe, write_end = os.pipe()
        # A Ctrl-C in between would leave one behind that is not known, or no group yet.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            end_s = math.ceil(deadline_s) + _GRACE_S
            self._pid = fork_child(partial(_ask, of, ask, write_end, mask, end_s))
            with contextlib.suppress(OSError):
                os.setpgid(self._pid, self._pid)
            _asking[self._pid] = os.getpid()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(write_end)

    def answer(self, form: type[_T]) -> _T | NoAnswer:
        """Wait for the answer, which is JSON of this form; see `output`."""
        data = self.output()
        if isinstance(data, NoAnswer):
            return data
        try:
            return msgspec.json.decode(data, type=form)
        except msgspec.MsgspecError:
            shown = data[:60].decode(errors="replace")
            return NoAnswer(f"{self._of} answered {shown!r}, which Teho does not understand")

    def output(self) -> bytes | NoAnswer:
        """Wait for what was written; its process is gone then, where it lets itself end."""
        data, in_time = self._listen()
        if not in_time:
            _end(self._pid)
        code = self._exit_code(until_s=self._until_s if in_time else 0.0)
        if not in_time:
            why = f"{self._of} did not answer within {self._deadline_s:g} s"
        elif data.startswith(_ERROR):
            why = data[1:].decode(errors="replace")
        elif code < 0:
            why = f"the process that asked {self._of} was ended by {signal.Signals(-code).name}"
        elif code and not data:
            why = f"the process that asked {self._of} failed: {code}"
        else:
            return data
        return NoAnswer(why)

    def _exit_code(self, until_s: float) -> int:
        """Return how the process ended; 0 if it still ends, perhaps inside a driver."""
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
    """End what was not waited for: Ctrl-C does not reach a process group of its own."""
    for group, asker in tuple(_asking.items()):
        if asker == os.getpid():
            _end(group)


def answering(question: Callable[[], object]) -> Callable[[int], None]:
    """Return what asks a function, for `IsolatedCall`."""

    def ask(write_end: int) -> None:
        data = msgspec.json.encode(question())
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(data)

    return ask


def executing(command: Sequence[str], environment: Mapping[str, str]) -> Callable[[int], None]:
    """Return what becomes a command, for `IsolatedCall`; its standard output is the answer."""

    def ask(write_end: int) -> None:
        os.dup2(write_end, 1)
        os.close(write_end)
        try:
            os.execvpe(command[0], list(command), environment)  # noqa: S606 - no shell is wanted
        except FileNotFoundError:
            raise InputError(f"no command {command[0]} here") from None

    return ask


def _ask(
    of: str,
    ask: Callable[[int], None],
    write_end: int,
    mask: Collection[int],
    end_s: int,
) -> None:
    """In the asking process: ask, and write the answer; or why there is none, after `_ERROR`."""
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    signal.alarm(end_s)
    os.setpgid(0, 0)
    # What a driver's library prints is not a part of the answer. A process that hangs must not
    # keep the terminal, or the reader of Teho's output, waiting.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
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
        os.write(error_end, _ERROR + f"asking {of} failed: {error!r}".encode())
        raise
