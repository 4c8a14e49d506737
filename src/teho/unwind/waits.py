"""States of a thread: it runs, or it waits for something.

The kernel reports in `/proc/PID/task/TID/syscall` the system call in which a thread waits, with its
arguments (proc(5)). This needs the same permission as reading the process's memory.
"""

from __future__ import annotations

import os
import platform
import re
import struct
from pathlib import Path

from teho.model.stack import State
from teho.patterns import lazy_pattern
from teho.unwind.memory import Memory, UnwindError, read_file

__all__ = ["Waits", "times_in"]

# Numbers of system calls, by `asm/unistd_64.h` of x86-64 and `asm-generic/unistd.h` of AArch64.
_X86 = {
    "read": (0, 17, 19, 295, 327), "write": (1, 18, 20, 40, 285, 296, 328),
    "sync": (26, 74, 75, 162, 277, 306),
    "file": (2, 4, 5, 6, 21, 78, 82, 83, 87, 217, 257, 262, 332),
    "poll": (7, 271), "select": (23, 270), "epoll": (232, 281, 441),
    "socket": (42, 43, 44, 45, 46, 47, 288), "sleep": (35, 230), "futex": (202, 449),
    "process": (34, 61, 65, 69, 70, 128, 220, 242, 243, 247), "device": (16,), "thread": (24,),
}  # fmt: skip
_ARM = {
    "read": (63, 65, 67, 69, 286), "write": (64, 66, 68, 70, 47, 71, 287),
    "sync": (81, 82, 83, 84, 227, 267), "file": (34, 35, 38, 43, 44, 48, 56, 61, 79, 80, 291),
    "poll": (73,), "select": (72,), "epoll": (22, 441),
    "socket": (202, 203, 206, 207, 211, 212, 242), "sleep": (101, 115), "futex": (98, 449),
    "process": (95, 137, 182, 183, 188, 189, 192, 193, 260), "device": (29,), "thread": (124,),
}  # fmt: skip
_NAMES = {
    str(number).encode(): name
    for name, numbers in (_ARM if platform.machine() == "aarch64" else _X86).items()
    for number in numbers
}
_STATES = {
    "sync": State.DISK, "file": State.DISK, "process": State.PROCESS, "thread": State.LOCK,
}  # fmt: skip
"""States of the calls whose arguments need not be read."""
_FUTEX_PRIVATE = 128
_CORE = 36
"""Index of the core among the fields of `stat` after the name (proc(5), field 39)."""
_PAGE_FAULT = b"-1"
_ENDED = b"-1 0x0 0x0"
"""A thread without memory: it has ended, but its parent has not waited for it yet."""
_LONGEST_PATH = 4096
_NO_LIMIT = 1 << 31
"""Sign bit of a 32-bit time-out: a negative one means no limit."""
_POLLED = struct.Struct("<ihh")
_MOST_POLLED = 8
_MOST_THREADS = 32
_DEVICES = lazy_pattern(r"/dev/(nvidia|kfd|dri/|accel|davinci)")
_MOST_SOCKETS = 10_000
_WATCHED = lazy_pattern(rb"^tfd:\s*(\d+)", re.MULTILINE)


class Waits:
    """States of the main thread of a process.

    Args:
        pid: the process.
        memory: the process's.

    Raises:
        UnwindError: the kernel does not permit it.
    """

    def __init__(self, pid: int, memory: Memory) -> None:
        self._pid = pid
        self._memory = memory
        self._sockets: dict[str, State] = {}
        self._unix: set[str] = set()
        """Inodes of the known sockets that are Unix sockets."""
        self._running: list[str] = []
        self._call = _opened(pid, "syscall")
        try:
            self._stat = _opened(pid, "stat")
        except UnwindError:
            os.close(self._call)
            raise
        self._times = _opened_if_any(pid, "schedstat")
        self._place = _opened_if_any(pid, "wchan")
        self._has_place = False
        """Whether the kernel has named a place. Some kernels always answer 0."""

    def close(self) -> None:
        """Close all files."""
        for descriptor in (self._call, self._stat, self._times, self._place):
            if descriptor is not None:
                os.close(descriptor)

    def core(self) -> int:
        """Return the core on which the thread runs, or ran last.

        Raises:
            UnwindError: the thread has ended.
        """
        data = _read_again(self._stat, 1024)
        fields = data[data.rfind(b")") + 2 :].split()
        if len(fields) <= _CORE:
            raise UnwindError("the process has ended")
        return int(fields[_CORE])

    def call(self) -> bytes:
        """Return the system call in which the thread waits, with arguments; empty if it runs.

        Raises:
            UnwindError: the thread has ended.
        """
        call = _read_again(self._call, 256)
        if not call or call.rstrip() == _ENDED:
            raise UnwindError("the process has ended")
        return b"" if call.startswith(b"running") else call

    def state(self, call: bytes) -> State:
        """Return what a thread waits for. It must still wait in this call.

        Args:
            call: a result of `call`; not empty.
        """
        words = call.split()
        if words[0] == _PAGE_FAULT:  # of a mapped file, or of swapped memory
            return State.DISK
        name = _NAMES.get(words[0], "")
        return self._waited_for(name, [int(word, 16) for word in words[1:7]])

    def times(self) -> tuple[float, float] | None:
        """Return how long the thread has run, and how long it waited for a core, in s.

        None if the kernel does not count this, or the thread has ended.
        """
        return times_in(self.account())

    def account(self) -> bytes:
        """Return the thread's `schedstat`; empty if the kernel does not have it.

        It has three numbers: the time on a core and the time waiting for a core, in ns, and how
        often it got a core (Documentation/scheduler/sched-stats.rst). They do not change while the
        thread waits.
        """
        return _read_again(self._times, 64)

    def sleeps(self) -> bool | None:
        """Return whether the thread waits; None if the kernel does not report it.

        A thread that is ready but has no core does not wait. This is faster than `call`, and does
        not move the thread to another core (proc(5), wchan).
        """
        place = _read_again(self._place, 64)
        self._has_place |= place not in {b"", b"0"}
        return place != b"0" if self._has_place and place else None

    def _waited_for(self, name: str, arguments: list[int]) -> State:
        if name == "sleep" or (name in {"poll", "select"} and not _descriptors_in(name, arguments)):
            return State.SLEEPING
        if name in _STATES:
            return _STATES[name]
        if name == "futex":
            if self._others_run():
                return State.THREADS
            is_shared = not arguments[1] & _FUTEX_PRIVATE
            return State.PROCESS if is_shared and not self._is_thread_id(arguments) else State.LOCK
        if name in {"read", "write", "socket", "device"}:
            return self._of_descriptor(arguments[0])
        if name in {"poll", "select", "epoll"}:
            if self._others_run():
                return State.THREADS
            return self._of_any(name, arguments)
        return State.WAITING

    def _is_thread_id(self, arguments: list[int]) -> bool:
        """Return whether a shared lock is a thread's number, as in `pthread_join`."""
        try:
            value = int.from_bytes(self._memory.read(arguments[0], 4), "little")
        except UnwindError:
            return False
        return value > 1 and Path(f"/proc/{self._pid}/task/{value}").exists()

    def blocked_on(self) -> str | None:
        """Return the file whose file system does not answer; empty if its path is not known.

        None if the main thread waits for something else, or in a way that a signal can interrupt.

        Raises:
            UnwindError: the thread has ended.
        """
        data = _read_again(self._stat, 1024)
        if data[data.rfind(b")") + 2 :][:1] != b"D":
            return None
        words = self.call().split()
        if not words:
            return None
        if words[0] == _PAGE_FAULT:
            return ""
        name = _NAMES.get(words[0], "")
        arguments = [int(word, 16) for word in words[1:7]]
        if name in {"read", "write", "sync"} and arguments:
            target = self._target(arguments[0])
            is_file = target.startswith("/") and not target.startswith("/dev/")
            return target if is_file else None
        return self._path_in(arguments) if name == "file" else None

    def _path_in(self, arguments: list[int]) -> str:
        """Return the path among the first arguments of a call; empty if there is none."""
        for address in arguments[:2]:
            data = self._memory.some(address, _LONGEST_PATH).partition(b"\0")[0]
            if data[:1] in {b"/", b"."} or data[:1].isalnum():
                return os.fsdecode(data)
        return ""

    # ---- other threads ----

    def is_in_lock(self, thread: int) -> bool:
        """Return whether another thread of the process waits for a lock of the process."""
        call = read_file(f"/proc/{self._pid}/task/{thread}/syscall").split()
        return bool(call) and _NAMES.get(call[0]) == "futex"

    def runs(self, thread: int) -> bool:
        """Return whether a thread of the process runs now."""
        return _runs(f"/proc/{self._pid}/task/{thread}/stat")

    def _others_run(self) -> bool:
        """Return whether another thread of the process runs now."""
        folder = f"/proc/{self._pid}/task"
        try:
            threads = os.listdir(folder)  # noqa: PTH208 - names are wanted
        except OSError:
            return False
        own = str(self._pid)
        # A thread that ran the last time most likely runs now.
        known = [one for one in self._running if one in threads]
        rest = [one for one in threads if one not in known]
        for thread in [*known, *rest][: _MOST_THREADS + 1]:
            if thread != own and _runs(f"{folder}/{thread}/stat"):
                self._running = [thread, *(one for one in known if one != thread)][:4]
                return True
        return False

    # ---- descriptors ----

    def _of_any(self, name: str, arguments: list[int]) -> State:
        """Return what a call waits for that waits for several descriptors at once."""
        waited_on = self._waited_on(name, arguments)
        found = [self._of_descriptor(one) for one in waited_on]
        if name == "epoll" and self._is_own_pair(waited_on):
            # An event loop such as asyncio's, which only its own process can wake: it waits for a
            # time, or for threads.
            return State.LOCK if arguments[3] & _NO_LIMIT else State.SLEEPING
        known = [state for state in found if state is not State.WAITING]
        return max(set(known), key=known.count) if known else State.WAITING

    def _waited_on(self, name: str, arguments: list[int]) -> list[int]:
        if name == "epoll":
            text = read_file(f"/proc/{self._pid}/fdinfo/{arguments[0]}")
            return [int(one) for one in _WATCHED.findall(text)][:_MOST_POLLED]
        count = min(arguments[1 if name == "poll" else 0], 1024)
        try:
            if name == "poll":
                data = self._memory.read(arguments[0], _POLLED.size * min(count, _MOST_POLLED))
                return [one[0] for one in _POLLED.iter_unpack(data)]
            bits = int.from_bytes(self._memory.read(arguments[1], (count + 7) // 8), "little")
        except UnwindError:
            return []
        return [place for place in range(count) if bits >> place & 1][:_MOST_POLLED]

    def _is_own_pair(self, descriptors: list[int]) -> bool:
        """Return whether a call waits for one Unix socket only, with which event loops wake."""
        if len(descriptors) != 1:
            return False
        target = self._target(descriptors[0])
        return target.startswith("socket:[") and target[8:-1] in self._unix

    def _target(self, descriptor: int) -> str:
        """Return what a descriptor refers to, as the kernel names it; empty if it is closed."""
        try:
            return os.readlink(f"/proc/{self._pid}/fd/{descriptor}")  # noqa: PTH115
        except OSError:
            return ""

    def _of_descriptor(self, number: int) -> State:
        target = self._target(number)
        if target.startswith("socket:["):
            return self._of_socket(target[8:-1])
        if target.startswith("pipe:["):
            return State.PROCESS
        if _DEVICES.match(target):
            return State.DEVICE
        if target.startswith("/dev/"):  # a terminal: waits for the user
            return State.WAITING
        return State.DISK if target.startswith("/") else State.WAITING

    def _of_socket(self, inode: str) -> State:
        """Return PROCESS if the other end of a socket is on this machine, else NETWORK."""
        known = self._sockets.get(inode)
        if known is None:
            if len(self._sockets) >= _MOST_SOCKETS:
                self._sockets.clear()
            known = self._sockets[inode] = self._state_of(inode)
        return known

    def _state_of(self, inode: str) -> State:
        for name in ("tcp", "tcp6", "udp", "udp6"):
            words = _row(f"/proc/{self._pid}/net/{name}", 9, inode)
            if words:
                return State.PROCESS if _is_local(words[2]) else State.NETWORK
        if _row(f"/proc/{self._pid}/net/unix", 6, inode):
            self._unix.add(inode)
            return State.PROCESS
        return State.NETWORK


def times_in(account: bytes) -> tuple[float, float] | None:
    """Return how long a thread has run, and how long it waited for a core, in s.

    Args:
        account: a result of `Waits.account`; None is returned if it is empty.
    """
    words = account.split()
    return (int(words[0]) / 1e9, int(words[1]) / 1e9) if len(words) == 3 else None


def _opened(pid: int, name: str) -> int:
    try:
        return os.open(f"/proc/{pid}/task/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UnwindError(f"the process's system calls cannot be read: {error.strerror}") from None


def _opened_if_any(pid: int, name: str) -> int | None:
    try:
        return _opened(pid, name)
    except UnwindError:
        return None


def _descriptors_in(name: str, arguments: list[int]) -> int:
    return arguments[1 if name == "poll" else 0]


def _read_again(descriptor: int | None, size: int) -> bytes:
    """Return the present content of an open file; empty without a file, or if it fails."""
    try:
        return b"" if descriptor is None else os.pread(descriptor, size, 0)
    except OSError:
        return b""


def _runs(path: str) -> bool:
    data = read_file(path)
    return data[data.rfind(b")") + 2 :][:1] == b"R"


def _row(path: str, column: int, value: str) -> list[str]:
    """Return the row of a table that has a value in a column; empty if there is none.

    A program that opens many connections has long tables: only rows with this text are divided.
    """
    data, text = read_file(path), value.encode()
    place = data.find(text)
    while place >= 0:
        begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        words = data[begin : end if end >= 0 else len(data)].decode("ascii", "replace").split()
        if len(words) > column and words[column] == value:
            return words
        place = data.find(text, place + 1)
    return []


def _is_local(address: str) -> bool:
    """Return whether an address of `/proc/net/tcp` is on the loopback device."""
    host = address.partition(":")[0]
    if len(host) == 8:
        return host.endswith("7F")
    return host == "00000000000000000000000001000000" or (
        host[:24] == "0000000000000000FFFF0000" and host.endswith("7F")
    )
