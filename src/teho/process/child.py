"""Forked child processes that do some work and end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence

from teho.errors import TehoError

__all__ = [
    "Child",
    "close_descriptors",
    "detach_streams",
    "fork_child",
    "has_terminal",
    "silence_streams",
    "spawn_with_pipe",
    "wait_for_exit",
]

_PAUSE_S = 0.001
_LONGEST_PROBLEM_BYTES = 4096


def fork_child(work: Callable[[], object]) -> int:
    """Start a child process that does some work, and return its process id.

    The exit code is 0, or 1 if the work raised an exception. The child runs no exit handlers and
    flushes no files, because those belong to the parent.

    Raises:
        OSError: no process can be started.
    """
    with warnings.catch_warnings():
        # Python 3.12 warns if there are other threads. Teho's other threads only wait, for signals
        # or in Arrow's allocator. They have no lock that the child could need.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def spawn_with_pipe(
    command: Sequence[str], environment: Mapping[str, str], stdin: int | None = None
) -> tuple[int, int]:
    """Start a command in its own session: return its process id, and a pipe with all it prints.

    The command does not inherit how this process handles signals: it ends if the pipe breaks.

    Args:
        command: the program, which is searched on the PATH, and its arguments.
        environment: the command's.
        stdin: descriptor of its input; None: it has no input.

    Raises:
        OSError: it cannot be started.
        NotImplementedError: this system cannot start it in its own session.
    """
    no_input = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    read_end, write_end = os.pipe()
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            dict(environment),
            file_actions=[
                no_input if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_DUP2, write_end, 1),
                (os.POSIX_SPAWN_DUP2, write_end, 2),
            ],
            setsid=True,
            setsigmask=(),
            # Python ignores these two signals from its start.
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    except (OSError, NotImplementedError):
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    return pid, read_end


def wait_for_exit(pid: int, until_s: float) -> int | None:
    """Wait until a child ends, and return its wait status; None if it has not ended in time.

    Args:
        pid: the child.
        until_s: when to give up, by the monotonic clock.

    Raises:
        ChildProcessError: the child was already waited for.
    """
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() >= until_s:
            return None
        time.sleep(_PAUSE_S)


def detach_streams(keep: Collection[int]) -> None:
    """Close the user's streams and files. Then a pipe ends when the program closes it."""
    silence_streams()
    close_descriptors(keep)


def silence_streams() -> None:
    """Close the user's streams; what is read from them is empty, what is written is lost."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if null > 2:
        os.close(null)


def close_descriptors(keep: Collection[int]) -> None:
    """Close all inherited files, except the standard streams and those to keep."""
    for descriptor in [int(entry.name) for entry in os.scandir("/proc/self/fd")]:
        if descriptor > 2 and descriptor not in keep:
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Child:
    """Work in a forked process. Its memory is freed when it ends."""

    def __init__(self, work: Callable[[], object]) -> None:
        """Start the work.

        Raises:
            OSError: no process can be started.
        """
        self._read_end, write_end = os.pipe()
        self._problem: str | None = None
        try:
            self._pid = fork_child(lambda: _report(work, write_end))
        except OSError:
            os.close(self._read_end)
            raise
        finally:
            os.close(write_end)

    def ended(self) -> bool:
        """Return whether the work has ended, without waiting for it."""
        if self._problem is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._reap(status)
        return self._problem is not None

    def join(self) -> str:
        """Wait until the work ends; return what went wrong, or an empty string."""
        if self._problem is None:
            self._reap(os.waitpid(self._pid, 0)[1])
        return self._problem or ""

    def _reap(self, status: int) -> None:
        problem = os.read(self._read_end, _LONGEST_PROBLEM_BYTES).decode(errors="replace")
        os.close(self._read_end)
        code = os.waitstatus_to_exitcode(status)
        killed = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
        self._problem = problem or killed or (f"exit code {code}" if code else "")


def _report(work: Callable[[], object], write_end: int) -> None:
    """Do the work. If it raises an exception, send the parent its text."""
    try:
        work()
    except BaseException as error:
        problem = str(error) if isinstance(error, (OSError, TehoError)) else repr(error)
        os.write(write_end, (problem or repr(error)).encode()[:_LONGEST_PROBLEM_BYTES])
        raise


def has_terminal() -> bool:
    """Return whether there is a controlling terminal, and so a shell with job control."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
