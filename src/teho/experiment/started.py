"""A program that was started to be measured, and all processes that it started since."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from teho.errors import InputError

__all__ = [
    "Started", "end_marked", "ended_words", "last_lines", "marked", "tail_of", "with_last_message",
]  # fmt: skip

_MOMENT_S = 3.0
"""Time that a program has to end after SIGTERM."""
_TAIL_BYTES = 4096
_TAIL_LINES = 5


class Started:
    """A command in a new session, with no input.

    Args:
        argv: the command.
        environment: of the command.
        errors: file for its stderr.
        cores: logical CPUs on which it may run; None: the same as this process.

    Raises:
        InputError: the command does not start.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        errors: Path,
        cores: Sequence[int] | None = None,
    ) -> None:
        own = os.sched_getaffinity(0)
        with errors.open("wb") as stderr:
            try:
                if cores:  # a child inherits its parent's cores
                    os.sched_setaffinity(0, cores)
                self._process = subprocess.Popen(
                    argv,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(
                    f"{argv[0]}: {error.strerror}",
                    "a program that starts",
                    f"check the name: `command -v {argv[0]}`",
                ) from None
            finally:
                if cores:
                    os.sched_setaffinity(0, own)
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, below 0 a signal's number; None while the command runs."""
        return self._process.poll()

    def end(self, mark: str) -> None:
        """End the command and every process whose environment has this entry.

        Args:
            mark: such as `NAME=value`.
        """
        with _without_interrupts():
            until_s = time.monotonic() + _MOMENT_S
            self._signal(signal.SIGTERM, mark)
            while (self.poll() is None or marked(mark)) and time.monotonic() < until_s:
                time.sleep(0.02)
            self._signal(signal.SIGKILL, mark)
            self._process.wait()

    def end_marked(self, mark: str, patience_s: float) -> None:
        """End only the processes with this entry, and wait until the command itself ends.

        Args:
            mark: such as `NAME=value`. The command itself does not have it.
            patience_s: time after which the command is ended too.
        """
        with _without_interrupts():
            end_marked(mark)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
        if self.poll() is None:
            self.end(mark)

    def _signal(self, number: signal.Signals, mark: str) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        _send(marked(mark), number)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT and SIGTERM, so that a second Ctrl-C leaves no processes behind."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


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
    """End the processes that `marked` finds; return whether there was one."""
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
    """Return how a program ended, from its exit code or, below 0, a signal's number."""
    if exit_code == -signal.SIGKILL:
        return "the run was killed (SIGKILL), probably because memory was full"
    if exit_code < 0:
        names = {one.value: one.name for one in signal.Signals}
        return f"the run was ended by {names.get(-exit_code, f'signal {-exit_code}')}"
    return f"the run ended with exit code {exit_code}"


def with_last_message(how: str, last: str) -> str:
    """Add the last line that a program printed to how it ended; without a line, only how."""
    return f"{how}, and its last message was “{last.strip()}”" if last.strip() else how


def tail_of(errors: Path) -> str:
    """Return the last lines of a file."""
    with errors.open("rb") as file:
        return "\n".join(last_lines(file))


def last_lines(file: BinaryIO) -> list[str]:
    """Return the last lines of an open file, at most five."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    return file.read().decode(errors="replace").strip().splitlines()[-_TAIL_LINES:]
