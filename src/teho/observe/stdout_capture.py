"""What a program prints is passed on as it comes, and its beginning kept.

A process of its own does it, which outlives everybody who could be killed: the program's words
arrive whatever becomes of Teho.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import struct
import time
from collections.abc import Callable
from functools import partial

from teho.process.child import detach_streams, fork_child

__all__ = ["KEPT_BYTES", "StdoutCapture"]

KEPT_BYTES = 1 << 20
"""Of what a program prints, the first so many are kept."""
_CHUNK_BYTES = 1 << 16
_HEAD = struct.Struct("=QQ")
"""How many bytes are kept behind it, and the number of the error that ended the passing on."""
_FLUSH_S = 5.0
"""For which what the program has left in the pipe is waited for once it is gone."""


class StdoutCapture:
    """A pipe for a program's standard output, and who reads from it.

    Raises:
        OSError: there is no pipe, memory or process to be had.
    """

    def __init__(self) -> None:
        """Begin to pass on."""
        if not os.get_inheritable(1):
            # Ours was closed, and is something that was opened since; it is to be closed for
            # the program too.
            raise OSError("it is closed")
        # Pythons that are built for old systems, as conda's and uv's are, have no memfd_create.
        self._memory = mmap.mmap(-1, _HEAD.size + KEPT_BYTES)
        read_end, self._write_end = os.pipe()
        self.pid = fork_child(partial(_pass_on, read_end, self._memory))
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
        count, _ = _HEAD.unpack_from(self._memory)
        return self._memory[_HEAD.size : _HEAD.size + count]

    @property
    def error(self) -> str:
        """Why what is printed was not passed on any more; empty if the reader only left."""
        _, number = _HEAD.unpack_from(self._memory)
        return "" if number in {0, errno.EPIPE} else os.strerror(number)


def _pass_on(read_end: int, memory: mmap.mmap) -> None:
    to = os.dup(1)
    detach_streams(keep=(read_end, to))
    count = 0
    while chunk := os.read(read_end, _CHUNK_BYTES):
        if kept := chunk[: KEPT_BYTES - count]:
            begin, count = _HEAD.size + count, count + len(kept)
            memory[begin : _HEAD.size + count] = kept
            _HEAD.pack_into(memory, 0, count, 0)
        rest = memoryview(chunk)
        while rest:
            try:
                rest = rest[os.write(to, rest) :]
            except BlockingIOError:  # who shares it has made it so
                poll = select.poll()
                poll.register(to, select.POLLOUT)
                poll.poll()
            except OSError as error:  # it ends the pipe, which is all that the program hears of it
                _HEAD.pack_into(memory, 0, count, error.errno or errno.EIO)
                return
