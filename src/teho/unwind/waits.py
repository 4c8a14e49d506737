"""What a thread does at a moment, by the kernel's account: it runs, or what it waits for.

`/proc/PID/task/TID/syscall` says which system call a thread waits in, with its arguments
(proc(5)); it needs the same permission as reading the process's memory.
"""

from __future__ import annotations

import os
import platform
import re
import struct
from pathlib import Path

from teho.model.watched import State
from teho.unwind.memory import Memory, UnwindError

__all__ = ["Waits"]

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
_FUTEX_PRIVATE = 128
_CORE = 36
"""Place of the core among the fields of stat after the name (proc(5), field 39)."""
_PAGE_FAULT = b"-1"
_ENDED = b"-1 0x0 0x0"
"""Of a thread without memory of its own: its parent has not waited for it yet."""
_NO_LIMIT = 1 << 31
"""Sign of a time-out of 32 bits: a negative one waits for ever."""
_POLLED = struct.Struct("<ihh")
_MOST_POLLED = 8
_MOST_THREADS = 32
_DEVICES = re.compile(r"/dev/(nvidia|kfd|dri/|accel|davinci)")
_MOST_SOCKETS = 10_000


class Waits:
    """Tells what the main thread of a process does.

    Args:
        pid: the process.
        memory: the process's.

    Raises:
        UnwindError: the kernel does not allow it.
    """

    def __init__(self, pid: int, memory: Memory) -> None:
        self._pid = pid
        self._memory = memory
        self._sockets: dict[str, State] = {}
        self._unix: set[str] = set()
        """Those of them that are Unix sockets."""
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
        """Whether the kernel has named a place: some always answer 0."""

    def close(self) -> None:
        """Let go of the process."""
        for descriptor in (self._call, self._stat, self._times, self._place):
            if descriptor is not None:
                os.close(descriptor)

    def core(self) -> int:
        """Return the core that it runs on, or ran on last.

        Raises:
            UnwindError: it has ended.
        """
        try:
            data = os.pread(self._stat, 1024, 0)
        except OSError:
            data = b""
        fields = data[data.rfind(b")") + 2 :].split()
        if len(fields) <= _CORE:
            raise UnwindError("it has ended")
        return int(fields[_CORE])

    def call(self) -> bytes:
        """Return the system call that it waits in, with its arguments; empty if it runs.

        Raises:
            UnwindError: it has ended.
        """
        try:
            call = os.pread(self._call, 256, 0)
        except OSError:
            call = b""
        if not call or call.rstrip() == _ENDED:
            raise UnwindError("it has ended")
        return b"" if call.startswith(b"running") else call

    def state(self, call: bytes) -> State:
        """Return what is waited for in a call; to be asked while that is still so.

        Args:
            call: as `call` returns it; not empty.
        """
        words = call.split()
        if words[0] == _PAGE_FAULT:  # a part of a file that is mapped, or memory swapped out
            return State.DISK
        name = _NAMES.get(words[0], "")
        return self._waited_for(name, [int(word, 16) for word in words[1:7]])

    def times(self) -> tuple[float, float] | None:
        """Return for how long it has run, and could have but had no core, in s.

        None if the kernel does not count it, or the thread has ended.
        """
        words = self.account().split()
        return (int(words[0]) / 1e9, int(words[1]) / 1e9) if len(words) == 3 else None

    def account(self) -> bytes:
        """Return what the kernel counts of its time on cores; empty if it does not.

        Three numbers: for how long it has run, and could have but had no core, in ns, and how often
        it was given a core (schedstat, Documentation/scheduler/sched-stats.rst). They do not change
        while it waits.
        """
        try:
            return b"" if self._times is None else os.pread(self._times, 64, 0)
        except OSError:
            return b""

    def sleeps(self) -> bool | None:
        """Return whether it waits, without what for; None if the kernel does not say.

        A thread that could run but has no core does not wait. This is faster than `call`, and
        leaves the thread where it is (proc(5), wchan).
        """
        try:
            place = b"" if self._place is None else os.pread(self._place, 64, 0)
        except OSError:
            return None
        self._has_place |= place not in {b"", b"0"}
        return place != b"0" if self._has_place else None

    def _waited_for(self, name: str, arguments: list[int]) -> State:
        if name == "sleep" or (name in {"poll", "select"} and not _descriptors_in(name, arguments)):
            return State.SLEEPING
        if name in {"sync", "file"}:
            return State.DISK
        if name in {"process", "thread"}:
            return State.PROCESS if name == "process" else State.LOCK
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
        """Return whether a shared lock is a thread's number: `pthread_join` waits so."""
        try:
            value = int.from_bytes(self._memory.read(arguments[0], 4), "little")
        except UnwindError:
            return False
        return value > 1 and Path(f"/proc/{self._pid}/task/{value}").exists()

    # ---- other threads ----

    def _others_run(self) -> bool:
        """Return whether another thread of the process runs at this moment."""
        folder = f"/proc/{self._pid}/task"
        try:
            threads = os.listdir(folder)  # noqa: PTH208 - names are wanted
        except OSError:
            return False
        own = str(self._pid)
        # Who ran the last time most likely runs now.
        known = [one for one in self._running if one in threads]
        rest = [one for one in threads if one not in known]
        for thread in [*known, *rest][: _MOST_THREADS + 1]:
            if thread != own and _runs(f"{folder}/{thread}/stat"):
                self._running = [thread, *(one for one in known if one != thread)][:4]
                return True
        return False

    # ---- descriptors ----

    def _of_any(self, name: str, arguments: list[int]) -> State:
        """Return what is waited for by a call that waits for several descriptors at once."""
        waited_on = self._waited_on(name, arguments)
        found = [self._of_descriptor(one) for one in waited_on]
        if name == "epoll" and self._is_own_pair(waited_on):
            # Only what wakes its own loop, as asyncio has it: it waits for a time, or for threads.
            return State.LOCK if arguments[3] & _NO_LIMIT else State.SLEEPING
        known = [state for state in found if state is not State.WAITING]
        return max(set(known), key=known.count) if known else State.WAITING

    def _waited_on(self, name: str, arguments: list[int]) -> list[int]:
        if name == "epoll":
            try:
                text = Path(f"/proc/{self._pid}/fdinfo/{arguments[0]}").read_text()
            except OSError:
                return []
            return [int(one) for one in re.findall(r"^tfd:\s*(\d+)", text, re.MULTILINE)][
                :_MOST_POLLED
            ]
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
        """Return whether all that is waited on is one Unix socket, as a loop has to wake itself."""
        if len(descriptors) != 1:
            return False
        try:
            target = str(Path(f"/proc/{self._pid}/fd/{descriptors[0]}").readlink())
        except OSError:
            return False
        return target.startswith("socket:[") and target[8:-1] in self._unix

    def _of_descriptor(self, number: int) -> State:
        try:
            target = str(Path(f"/proc/{self._pid}/fd/{number}").readlink())
        except OSError:
            return State.WAITING
        if target.startswith("socket:["):
            return self._of_socket(target[8:-1])
        if target.startswith("pipe:["):
            return State.PROCESS
        if _DEVICES.match(target):
            return State.DEVICE
        if target.startswith("/dev/"):  # a terminal: the user is waited for
            return State.WAITING
        return State.DISK if target.startswith("/") else State.WAITING

    def _of_socket(self, inode: str) -> State:
        """Return whether the other end is on this machine."""
        known = self._sockets.get(inode)
        if known is None:
            if len(self._sockets) >= _MOST_SOCKETS:
                self._sockets.clear()
            known = self._sockets[inode] = self._look_up(inode)
        return known

    def _look_up(self, inode: str) -> State:
        for name in ("tcp", "tcp6", "udp", "udp6"):
            for words in _rows(f"/proc/{self._pid}/net/{name}"):
                if len(words) > 9 and words[9] == inode:
                    return State.PROCESS if _is_local(words[2]) else State.NETWORK
        for words in _rows(f"/proc/{self._pid}/net/unix"):
            if len(words) > 6 and words[6] == inode:
                self._unix.add(inode)
                return State.PROCESS
        return State.NETWORK


def _opened(pid: int, name: str) -> int:
    try:
        return os.open(f"/proc/{pid}/task/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UnwindError(f"what it waits for cannot be read: {error.strerror}") from None


def _opened_if_any(pid: int, name: str) -> int | None:
    try:
        return _opened(pid, name)
    except UnwindError:
        return None


def _descriptors_in(name: str, arguments: list[int]) -> int:
    return arguments[1 if name == "poll" else 0]


def _runs(path: str) -> bool:
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    return data[data.rfind(b")") + 2 :][:1] == b"R"


def _rows(path: str) -> list[list[str]]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return []
    return [line.split() for line in lines[1:]]


def _is_local(address: str) -> bool:
    """Return whether an address of `/proc/net/tcp` is on the loopback device."""
    host = address.partition(":")[0]
    if len(host) == 8:
        return host.endswith("7F")
    return host == "00000000000000000000000001000000" or (
        host[:24] == "0000000000000000FFFF0000" and host.endswith("7F")
    )
