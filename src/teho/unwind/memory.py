"""The memory of another process."""

from __future__ import annotations

import os
import struct
from pathlib import Path

__all__ = ["Memory", "UnwindError", "read_file"]

_POINTER = struct.Struct("<Q")


class UnwindError(Exception):
    """A process cannot be read; the message is a clause that says why."""


def read_file(path: str) -> bytes:
    """Return the content of a file in /proc; empty if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


class Memory:
    """The memory of one process, read through `/proc/PID/mem`.

    This needs the kernel's permission to attach as a debugger does. The process is neither stopped
    nor changed.

    Args:
        pid: the process.

    Raises:
        UnwindError: the process has ended, or the kernel does not permit it.
    """

    def __init__(self, pid: int) -> None:
        try:
            self.descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise UnwindError(f"the process's memory cannot be read: {error.strerror}") from None

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes.

        Raises:
            UnwindError: they cannot be read.
        """
        data = self.some(address, size)
        if len(data) < size:
            raise UnwindError("the process's memory has no such address")
        return data

    def some(self, address: int, most_bytes: int) -> bytes:
        """Return up to this number of bytes; empty if none can be read."""
        try:
            return os.pread(self.descriptor, most_bytes, address)
        except (OSError, OverflowError):
            return b""

    def pointer(self, address: int) -> int:
        """Return the pointer at an address.

        Raises:
            UnwindError: it cannot be read.
        """
        return int(_POINTER.unpack(self.read(address, 8))[0])

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)
