"""Another process's memory."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

__all__ = ["Memory", "Regions", "UnwindError"]

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
        try:
            data = os.pread(self.descriptor, size, address)
        except (OSError, OverflowError):
            data = b""
        if len(data) < size:
            raise UnwindError("its memory has no such place")
        return data

    def pointer(self, address: int) -> int:
        """Return the pointer at an address.

        Raises:
            UnwindError: it is not there.
        """
        return int(_POINTER.unpack(self.read(address, 8))[0])

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


class _Vector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_size_t), ("length", ctypes.c_size_t))


_process_vm_readv = ctypes.CDLL(None, use_errno=True).process_vm_readv
_process_vm_readv.argtypes = (
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
)  # fmt: skip
_process_vm_readv.restype = ctypes.c_ssize_t


class Regions:
    """Regions of a process that are read by one call, and so within a microsecond or two.

    Args:
        pid: the process.
        sizes: of each region, in bytes, at most.
    """

    def __init__(self, pid: int, sizes: Sequence[int]) -> None:
        self._pid = pid
        self._buffers = [ctypes.create_string_buffer(size) for size in sizes]
        self._local = (_Vector * len(sizes))()
        self._remote = (_Vector * len(sizes))()
        for vector, buffer in zip(self._local, self._buffers, strict=True):
            vector.base = ctypes.addressof(buffer)

    def read(self, *regions: tuple[int, int]) -> list[bytes]:
        """Return what is at addresses, each with its number of bytes.

        Raises:
            UnwindError: not all of it is there.
        """
        wanted = 0
        for place, (address, size) in enumerate(regions):
            self._local[place].length = self._remote[place].length = size
            self._remote[place].base = address
            wanted += size
        count = len(regions)
        if _process_vm_readv(self._pid, self._local, count, self._remote, count, 0) < wanted:
            raise UnwindError("its memory has no such place")
        return [
            ctypes.string_at(self._local[place].base, size)
            for place, (_, size) in enumerate(regions)
        ]
