"""Another process's memory."""

from __future__ import annotations

import os
import struct

__all__ = ["Memory", "UnwindError"]

_POINTER = struct.Struct("<Q")


class UnwindError(Exception):
    """A process cannot be read; the message is a clause that says why."""


class Memory:
    """The memory of one process, read by `/proc/PID/mem`.

    That file needs the kernel's permission to attach as a debugger does, and nothing more: it
    neither stops nor changes the process.

    Args:
        pid: the process.

    Raises:
        UnwindError: it is gone, or the kernel does not allow to read it.
    """

    def __init__(self, pid: int) -> None:
        try:
            self.descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise UnwindError(f"its memory cannot be read: {error.strerror}") from None

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes.

        Raises:
            UnwindError: they are not there.
        """
        data = self.some(address, size)
        if len(data) < size:
            raise UnwindError("its memory has no such place")
        return data

    def some(self, address: int, most_bytes: int) -> bytes:
        """Return what is there of so many bytes; nothing if nothing is."""
        try:
            return os.pread(self.descriptor, most_bytes, address)
        except (OSError, OverflowError):
            return b""

    def pointer(self, address: int) -> int:
        """Return the pointer at an address.

        Raises:
            UnwindError: it is not there.
        """
        return int(_POINTER.unpack(self.read(address, 8))[0])

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)
