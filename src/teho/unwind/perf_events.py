"""Samples of where a thread runs in user space, taken by the kernel with perf events.

Source: perf_event_open(2), and the kernel's include/uapi/linux/perf_event.h. The kernel takes the
samples into a ring of memory that both sides read and write. It neither stops the thread nor
attaches to it. An ordinary user may sample her own processes if `kernel.perf_event_paranoid` is at
most 2.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["RATE_HZ", "RefusedError", "Sample", "ThreadSamples", "why_refused"]

RATE_HZ = 19
"""Samples per second of CPU time: a prime number, so they are not in step with other timers."""
_STACK_BYTES = 3072
"""Kept of the stack: enough for the functions below `fprintf` of a number."""
_DATA_PAGES = 16
"""Room for 20 samples, so for one second; a power of two."""
_PAGE = mmap.PAGESIZE
_CALLS = {"x86_64": 298, "aarch64": 241}
"""Number of the system call, by the type of the processor."""

# Version 5 of perf_event_attr: type, size, config, sample_period, sample_type, read_format, flags,
# wakeup_events, bp_type, config1, config2, branch_sample_type, sample_regs_user,
# sample_stack_user, clockid, sample_regs_intr, aux_watermark, sample_max_stack, reserved.
_ATTRIBUTES = struct.Struct("<IIQQQQQIIQQQQIiQIHH")
_SOFTWARE, _CPU_CLOCK = 1, 0
_SAMPLE_IP, _SAMPLE_STACK_USER = 1 << 0, 1 << 13
_EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
_HEAD, _TAIL = 1024, 1032
"""Places of `data_head` and `data_tail` in the first page (perf_event_mmap_page)."""
_RECORD_SAMPLE = 9
_HEADER = struct.Struct("<IHH")
_WORD = struct.Struct("<Q")
_TWO_WORDS = struct.Struct("<QQ")


class RefusedError(Exception):
    """The kernel refuses perf events."""


class Sample(NamedTuple):
    """One moment of a thread."""

    address: int
    """Of the instruction."""
    stack: bytes
    """The newest part of the stack, from its top."""

    @property
    def words(self) -> tuple[int, ...]:
        """The words of the stack."""
        return struct.unpack(f"<{len(self.stack) // 8}Q", self.stack)


def _system_call(thread: int) -> int:
    """Open an event for a thread (0: the calling thread), and return its descriptor.

    Raises:
        OSError: the kernel refuses it.
    """
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "not used on this type of processor")
    attributes = _ATTRIBUTES.pack(
        _SOFTWARE, _ATTRIBUTES.size, _CPU_CLOCK, 1_000_000_000 // RATE_HZ,
        _SAMPLE_IP | _SAMPLE_STACK_USER, 0, _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR,
        0, 0, 0, 0, 0, 0, _STACK_BYTES, 0, 0, 0, 0, 0,
    )  # fmt: skip
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    descriptor = call(
        ctypes.c_long(number),
        ctypes.c_char_p(attributes),
        ctypes.c_long(thread),
        ctypes.c_long(-1),  # on any core
        ctypes.c_long(-1),  # in no group
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(descriptor)


def why_refused(proc: str = "/proc") -> str:
    """Return why the kernel refuses perf events of the caller's own threads; empty if it does not.

    Args:
        proc: mount point of the process file system.
    """
    try:
        os.close(_system_call(0))
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM}:
            return f"the kernel has no perf events ({error.strerror})"
        try:
            with open(f"{proc}/sys/kernel/perf_event_paranoid") as file:  # noqa: PTH123 - a text
                level = int(file.read())
        except (OSError, ValueError):
            level = 0
        # Containers often forbid the call, whatever this setting is.
        because = f"`kernel.perf_event_paranoid` is {level}" if level > 2 else error.strerror
        return f"the kernel refuses perf events ({because})"
    return ""


class ThreadSamples:
    """The samples of one thread. After the thread's end, its last samples can still be read.

    Args:
        thread: its id.

    Raises:
        OSError: the thread has ended, it belongs to another user, or the kernel refuses the event.
        MemoryError: the kernel has no more memory for the samples of this user.
    """

    def __init__(self, thread: int) -> None:
        descriptor = _system_call(thread)
        try:
            # The mapping has its own copy of the descriptor.
            self._ring = mmap.mmap(
                descriptor,
                (1 + _DATA_PAGES) * _PAGE,
                mmap.MAP_SHARED,
                mmap.PROT_READ | mmap.PROT_WRITE,
            )
        except OSError as error:
            raise MemoryError(error.strerror) from None
        finally:
            os.close(descriptor)

    def read(self) -> Iterator[Sample]:
        """Yield the samples since the last call."""
        head, tail = _TWO_WORDS.unpack_from(self._ring, _HEAD)
        if head == tail:
            return
        size = _DATA_PAGES * _PAGE
        begin, end = tail % size, head % size
        if begin < end:
            data = self._ring[_PAGE + begin : _PAGE + end]
        else:
            data = self._ring[_PAGE + begin : _PAGE + size] + self._ring[_PAGE : _PAGE + end]
        _WORD.pack_into(self._ring, _TAIL, head)
        place = 0
        while place + _HEADER.size <= len(data):
            kind, _, length = _HEADER.unpack_from(data, place)
            if length < _HEADER.size:
                return
            if kind == _RECORD_SAMPLE:
                yield _sample(data[place + _HEADER.size : place + length])
            place += length

    def close(self) -> None:
        """End the event."""
        self._ring.close()


def _sample(data: bytes) -> Sample:
    """Read a sample: the address, the size of the stack, the stack, the size that was copied."""
    address, size = _TWO_WORDS.unpack_from(data)
    if not size:
        return Sample(address, b"")
    begin = _TWO_WORDS.size
    (copied,) = _WORD.unpack_from(data, begin + size)
    return Sample(address, data[begin : begin + min(copied, size) // 8 * 8])
