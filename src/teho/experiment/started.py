"""A program that was started to be measured, and all processes that it has started since."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.errors import InputError

__all__ = ["Started", "end_marked", "ended_words", "marked", "tail_of"]

_MOMENT_S = 3.0
"""For which a program that was asked to end may go on."""
_TAIL_BYTES = 4096
_TAIL_LINES = 5


class Started:
    """A command in a session of its own, with no input.

    Args:
        argv: the command.
        environment: of it.
        errors: file for what it writes to stderr.
        cores: logical CPUs that it may run on; None: those of this process.

    Raises:
        InputError: it does not start.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        errors: Path,
        cores: Sequence[int] | None = None,
    ) -> None:
        with errors.open("wb") as wrong:
            own = os.sched_getaffinity(0)
            try:
                if cores:  # a child begins on its parent's
                    os.sched_setaffinity(0, cores)
                self._process = subprocess.Popen(
                    argv,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=wrong,
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(
                    f"{argv[0]}: {error.strerror}",
                    "a program that starts",
                    f"`command -v {argv[0]}`",
                ) from None
            finally:
                if cores:
                    os.sched_setaffinity(0, own)
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, below 0 a signal's number; None while it runs."""
        return self._process.poll()

    def end(self, mark: str) -> None:
        """End it and every process whose environment has this entry, also in other sessions.

        Args:
            mark: such as `NAME=value`.
        """
        # Who is impatient must not leave the half of them behind.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            until_s = time.monotonic() + _MOMENT_S
            self._signal(signal.SIGTERM, mark)
            while (self.poll() is None or marked(mark)) and time.monotonic() < until_s:
                time.sleep(0.02)
            self._signal(signal.SIGKILL, mark)
            self._process.wait()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def end_marked(self, mark: str, patience_s: float) -> None:
        """End the processes with this entry alone, and wait for the command itself to follow.

        Args:
            mark: such as `NAME=value`; the command itself does not have it.
            patience_s: for which the command may go on without them, until it is ended too.
        """
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            end_marked(mark)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if self.poll() is None:
            self.end(mark)

    def _signal(self, number: signal.Signals, mark: str) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        _send(marked(mark), number)


def marked(mark: str) -> list[int]:
    """Return the processes that were started with this entry in their environment."""
    entry = f"{mark}\0".encode()
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                if entry in (path / "environ").read_bytes() + b"\0":
                    found.append(int(path.name))
    return found


def end_marked(mark: str) -> bool:
    """End the processes that `marked` finds; return whether there was any."""
    were_any = False
    for number in (signal.SIGTERM, signal.SIGKILL):
        until_s = time.monotonic() + _MOMENT_S
        while (left := marked(mark)) and time.monotonic() < until_s:
            were_any = True
            _send(left, number)
            time.sleep(0.1)
    return were_any


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def ended_words(exit_code: int) -> str:
    """Say how a program ended, by its exit code or, below 0, a signal's number."""
    if exit_code == -signal.SIGKILL:
        return "it was killed (SIGKILL): mostly that is for memory"
    if exit_code < 0:
        named = {one.value: one.name for one in signal.Signals}
        return f"it was ended by {named.get(-exit_code, f'signal {-exit_code}')}"
    return f"it ended with exit code {exit_code}"


def tail_of(errors: Path) -> str:
    """Return the last lines of what a program wrote to a file."""
    with errors.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
