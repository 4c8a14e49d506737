"""Passes the program's output on, and keeps its first part.

A separate process does this. It continues if Teho is killed, so that no output is lost.
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
"""The number of bytes kept, from the beginning of the output."""
_CHUNK_BYTES = 1 << 16
_HEAD = struct.Struct("=QQ")
"""Number of kept bytes, which follow, and number of the error at which passing on ended."""
_FLUSH_S = 5.0
"""How long to wait for output in the pipe after the program has ended."""


class StdoutCapture:
    """A pipe for the program's standard output, and the process that reads it.

    Raises:
        OSError: no pipe, memory or process can be created.
    """

    def __init__(self) -> None:
        """Start to pass the output on."""
        if not os.get_inheritable(1):
            # Standard output was closed, and this descriptor is another file. The program must
            # have a closed standard output too.
            raise OSError("standard output is closed")
        # Pythons built for old systems, such as conda's and uv's, have no memfd_create.
        self._memory = mmap.mmap(-1, _HEAD.size + KEPT_BYTES)
        read_end, self._write_end = os.pipe()
        self.pid = fork_child(partial(_pass_on, read_end, self._memory))
        os.close(read_end)
        self.has_ended = False
        """Whether the process has ended. The supervisor sets this."""

    def become_output(self) -> None:
        """Make the pipe the standard output, in the program's process."""
        os.dup2(self._write_end, 1)

    def close_write_end(self) -> None:
        """Close the pipe in all other processes; otherwise it never ends."""
        os.close(self._write_end)

    def kept(self, reap: Callable[[], None]) -> bytes:
        """Return the first `KEPT_BYTES` of the program's output, after its end.

        The output of its children is passed on. This waits for it for at most 5 s.

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
        """Why passing on ended early; empty if the reader closed the pipe."""
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
            except BlockingIOError:  # another process has made it non-blocking
                poll = select.poll()
                poll.register(to, select.POLLOUT)
                poll.poll()
            except OSError as error:  # the pipe then ends, and the program gets SIGPIPE
                _HEAD.pack_into(memory, 0, count, error.errno or errno.EIO)
                return
