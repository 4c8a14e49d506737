"""What a program prints is passed on as it comes, and its beginning kept.

A process of its own does it, which outlives everybody who could be killed: the program's words
arrive whatever becomes of Teho.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable

__all__ = ["KEPT_BYTES", "PassedOn"]

KEPT_BYTES = 1 << 20
"""Of what a program prints, the first so many are kept."""
_CHUNK_BYTES = 1 << 16
_FLUSH_S = 5.0
"""For which what the program has left in the pipe is waited for once it is gone."""


class PassedOn:
    """A pipe for a program's standard output, and who reads from it.

    Raises:
        OSError: there is no pipe, memory or process to be had.
    """

    def __init__(self, detach: Callable[[tuple[int, ...]], None]) -> None:
        """Begin to pass on; `detach(keep)` lets go of all other descriptors of this process."""
        if not os.get_inheritable(1):
            # Ours was closed, and is something that was opened since; it is to be closed for
            # the program too.
            raise OSError("it is closed")
        self._memory = os.memfd_create("teho-printed", os.MFD_CLOEXEC)
        read_end, self._write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                own = os.dup(1)
                detach((read_end, own, self._memory))
                _pass_on(read_end, own, self._memory)
            os._exit(0)
        os.close(read_end)
        self.has_ended = False
        """To be set by who collects this process's children."""

    def become_output(self) -> None:
        """In the program's process: print into the pipe."""
        os.dup2(self._write_end, 1)

    def let_go(self) -> None:
        """In all other processes: close the pipe, which else never ends."""
        os.close(self._write_end)

    def kept(self, reap: Callable[[], None]) -> bytes:
        """Return the first `KEPT_BYTES` of what the program printed, now that it has ended.

        What its own children still print is passed on, and waited for no longer than 5 s.

        Args:
            reap: collects ended children, and sets `has_ended`.
        """
        deadline_s = time.monotonic() + _FLUSH_S
        reap()
        while not self.has_ended and time.monotonic() < deadline_s:
            time.sleep(0.002)
            reap()
        return os.pread(self._memory, KEPT_BYTES, 0)


def _pass_on(read_end: int, to: int, memory: int) -> None:
    left = KEPT_BYTES
    while chunk := os.read(read_end, _CHUNK_BYTES):
        if left:
            left -= os.write(memory, chunk[:left])
        rest = memoryview(chunk)
        while rest:  # an error ends the pipe, and the program hears of it as it would from a pipe
            try:
                rest = rest[os.write(to, rest) :]
            except BlockingIOError:  # who shares it has made it so
                poll = select.poll()
                poll.register(to, select.POLLOUT)
                poll.poll()
