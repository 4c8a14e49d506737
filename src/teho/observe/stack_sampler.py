"""Samples the stacks of a node's Python processes from outside, in a process of its own.

Each process is looked at at moments that are drawn by chance, so that no loop keeps step with them.
A look reads the stack of its main thread and what the kernel says that this thread does; see
`teho.unwind`. What is seen goes into one file in the spool, from where it is brought home.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import random
import select
import time
from pathlib import Path

import msgspec

from teho.model.watched import State
from teho.observe.stack_lines import StackLines, line_of
from teho.unwind.memory import UnwindError
from teho.unwind.stack import Key, Place, Unwinder, innermost_pid
from teho.unwind.waits import Waits

__all__ = ["StackSampler"]

_PERIOD_S = 0.016
_CLOSE_S, _CALM = 20.0, 8
"""From when on it looks less often, the longer the less, and how many times the period in the end:
an hour's shares are as exact with 5 looks a second."""
_COST_SHARE = 0.0025
"""Of each core's time, at the most: half of what the whole probe may take, 0.5 %."""
_GRACE_S = 0.2
_SLOWEST = 20
_FIND_S = 0.05
_WRITE_S = 1.0
_WRITE_SHARE = 1 / 60
"""Of the time so far, from one write to the next: parts of a run keep their times."""
_MOST_PROCESSES = 1024
_MOMENT_S = 3e-5
"""A call that goes on after so long, and what it takes to sleep and to wake up, lasts."""
_LASTING = (b"(", b"@", b"import", b"[", b"in", b"*", b"+", b"%", b"/", b"-")
""""What may call into a library that computes for long."""
_HEAD_BYTES = 4096


_LIBC = ctypes.CDLL(None)
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_PR_SET_TIMERSLACK = 29
_SLICE_NS = 100_000
"""The least that the kernel takes (sched(7), EEVDF)."""


class _SchedAttr(ctypes.Structure):
    """`struct sched_attr` of sched_setattr(2), as it was at first."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def _ask_for_short_slices() -> None:
    """Ask the kernel to let us run as soon as we wake up, for a short time each.

    A sampler that has to wait until a core is free looks when the program waits, and never when it
    computes. From Linux 6.12 on any process may ask for it; the schedulers before 6.6 prefer who
    has slept in any case.
    """
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        wanted = _SchedAttr(
            size=ctypes.sizeof(_SchedAttr), policy=os.sched_getscheduler(0), nice=nice,
            runtime=_SLICE_NS,
        )  # fmt: skip
        _LIBC.syscall(number, 0, ctypes.byref(wanted), 0)


class _Core:
    """The core that this process runs on: the one of the thread that it looks at.

    There the thread cannot go on while we look, so that what is read fits together; nothing stops
    it, we only have the core for some 50 µs.
    """

    def __init__(self) -> None:
        self._allowed = os.sched_getaffinity(0)
        self._at = -1

    def move_to(self, core: int) -> None:
        """Go on there, if it is allowed; if not, the thread may run while it is looked at."""
        if core == self._at or core not in self._allowed:
            return
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
            self._at = core


class _Head(msgspec.Struct):
    """How the file of a probe begins."""

    pid: int
    python: str
    implementation: str = ""
    pid_namespace: str = ""


class _Process:
    """One process that is looked at."""

    def __init__(self, name: str, pid: int, version: tuple[int, int], now_s: float) -> None:
        self.name = name
        self.pid = pid
        self.unwinder = Unwinder(pid, version)
        try:
            self.waits = Waits(pid, self.unwinder.memory)
        except UnwindError:
            self.unwinder.close()
            raise
        self.began_s = self.seen_s = self.told_s = now_s
        self.due_s = now_s
        self.ran_s, self.queued_s = self.waits.times() or (0.0, 0.0)
        self.seen: dict[tuple[Key, State], list[float]] = {}
        self._calls: dict[Place, bool] = {}

    def close(self) -> None:
        self.waits.close()
        self.unwinder.close()

    def look(self, core: _Core) -> None:
        """Add the time since the last look to where the thread is now.

        Raises:
            UnwindError: the process has ended.
        """
        state = self.waits.state()
        if state is None:
            core.move_to(self.waits.core())
            state = self.waits.state()  # it went on until we were there
        key = self.unwinder.look().key
        if state is None:
            state = self._of_running(key)
        now_s = time.monotonic()
        figures = self.seen.setdefault((key, state), [0, 0.0])
        figures[0] += 1
        figures[1] += now_s - self.seen_s
        self.seen_s = now_s

    def _of_running(self, key: Key) -> State:
        """Tell a call that lasts from Python that goes on, by letting it go on for a moment."""
        if not key or not self._is_call(key[0]):
            return State.PYTHON
        before = self.unwinder.innermost()
        time.sleep(_MOMENT_S)
        return State.NATIVE if self.unwinder.innermost() == before else State.PYTHON

    def _is_call(self, place: Place) -> bool:
        """Tell whether the instruction may take long; unknown before Python 3.11."""
        found = self._calls.get(place)
        if found is None:
            code, offset = place
            line, begin, end = code.place(offset)
            text = line_of(self.pid, code.file, line)[begin:end] if begin is not None else b""
            found = self._calls[place] = not text or any(sign in text for sign in _LASTING)
        return found


class StackSampler:
    """Looks at all Python processes whose probes write into a spool.

    Args:
        spool: the folder.
        cores: that the program may use: they say what looking may cost.
    """

    def __init__(self, spool: str, cores: int) -> None:
        self._spool = Path(spool)
        self._share = _COST_SHARE * max(1, cores)
        self._processes: dict[str, _Process] = {}
        self._known: set[str] = set()
        self._changed_ns = -1
        self._lines = StackLines(self._spool)
        self._began_s = self._written_s = time.monotonic()
        self._slower = 1.0
        self._parent = os.getppid()
        self._core = _Core()

    def run(self, control: int) -> None:
        """Look until the other end of a pipe is closed."""
        _ask_for_short_slices()
        self._introduce()
        find_s = 0.0
        while True:
            now_s = time.monotonic()
            if now_s >= find_s:
                self._find(now_s)
                find_s = now_s + _FIND_S
            for process in [one for one in self._processes.values() if one.due_s <= now_s]:
                self._look(process)
            if now_s - self._written_s >= max(_WRITE_S, _WRITE_SHARE * (now_s - self._began_s)):
                self._write()
                if os.getppid() != self._parent:  # the recorder was killed
                    return
            due_s = min((one.due_s for one in self._processes.values()), default=find_s)
            wait_s = max(0.0, min(due_s, find_s) - time.monotonic())
            if select.select([control], [], [], wait_s)[0]:
                self._write()
                return

    def _introduce(self) -> None:
        """Write down which process reads, for kernels that ask who may."""
        with contextlib.suppress(OSError):
            for folder in (self._spool.parent, self._spool):
                folder.mkdir(mode=0o700, exist_ok=True)
            if self._spool.lstat().st_uid != os.getuid():
                return
            flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._spool / "reader", flags, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(str(os.getpid()))

    def _find(self, now_s: float) -> None:
        """Take in the processes whose probes have begun to write."""
        try:
            found = self._spool.stat()
        except OSError:
            return
        if found.st_uid != os.getuid() or found.st_mtime_ns == self._changed_ns:
            return
        # A file made in the same tick of the clock would not change the time again.
        if time.time_ns() - found.st_mtime_ns > 20_000_000:
            self._changed_ns = found.st_mtime_ns
        for name in os.listdir(self._spool):  # noqa: PTH208 - names are wanted
            stem, _, ending = name.rpartition(".")
            if ending != "jsonl" or stem in self._known or not stem[:1].isdigit():
                continue
            if len(self._processes) < _MOST_PROCESSES:
                self._take_in(stem, now_s)

    def _take_in(self, stem: str, now_s: float) -> None:
        try:
            with (self._spool / f"{stem}.jsonl").open("rb") as file:
                line, ended, _ = file.read(_HEAD_BYTES).partition(b"\n")
            if not ended:
                return
            head = msgspec.json.decode(line, type=_Head)
            version = tuple(int(part) for part in head.python.split(".")[:2])
        except (OSError, ValueError, msgspec.MsgspecError):
            self._known.add(stem)
            return
        self._known.add(stem)
        try:
            process = _Process(stem, _outer_pid(head), (version[0], version[1]), now_s)
        except UnwindError as error:
            self._lines.failed(stem, str(error))
            return
        self._processes[stem] = process
        self._lines.began(stem, now_s)
        with contextlib.suppress(OSError):
            # The probe sees it, and looks no more itself.
            descriptor = os.open(self._spool / f"{stem}.seen", os.O_CREAT | os.O_WRONLY, 0o600)
            os.close(descriptor)

    def _look(self, process: _Process) -> None:
        try:
            process.look(self._core)
        except UnwindError:
            # For a moment nothing fits together; an end is seen by what the kernel says.
            if not Path(f"/proc/{process.pid}").exists() or _is_replaced(process):
                self._end(process)
                return
        now_s = time.monotonic()
        close = min(max(1.0, (now_s - process.began_s) / _CLOSE_S), _CALM)
        over_s = time.thread_time() - _GRACE_S - self._share * (now_s - self._began_s)
        self._slower = min(_SLOWEST, max(1.0, self._slower * (1.05 if over_s > 0 else 0.95)))
        period_s = _PERIOD_S * max(close, self._slower)
        process.due_s = now_s + period_s * random.uniform(0.5, 1.5)  # noqa: S311 - no secret

    def _end(self, process: _Process) -> None:
        self._tell(process)
        process.close()
        del self._processes[process.name]

    def _tell(self, process: _Process) -> None:
        ran_s, queued_s = process.waits.times() or (process.ran_s, process.queued_s)
        self._lines.saw(
            process.name, process.pid, process.seen, process.told_s, process.seen_s,
            queued_s - process.queued_s, ran_s - process.ran_s,
        )  # fmt: skip
        process.ran_s, process.queued_s = ran_s, queued_s
        process.seen = {}
        process.told_s = process.seen_s

    def _write(self) -> None:
        self._written_s = time.monotonic()
        for process in self._processes.values():
            self._tell(process)
        self._lines.flush(time.thread_time())


def _is_replaced(process: _Process) -> bool:
    """Tell whether a process ends, or has become another program: its memory is gone."""
    try:
        return not process.unwinder.memory.read(process.unwinder.thread, 8)
    except UnwindError:
        return True


def _outer_pid(head: _Head) -> int:
    """Return a process's number here, where its own namespace may have another one for it.

    Raises:
        UnwindError: it is not among the processes of this machine that can be seen, or another
            Python than CPython.
    """
    if head.implementation != "cpython":
        raise UnwindError(f"its Python is {head.implementation or 'not known'}")
    try:
        here = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        here = ""
    if not head.pid_namespace or head.pid_namespace == here:
        return head.pid
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are wanted
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            namespace = str(Path(f"/proc/{name}/ns/pid").readlink())
            if namespace == head.pid_namespace and innermost_pid(int(name)) == head.pid:
                return int(name)
    raise UnwindError("it is in a container whose processes cannot be seen from here")
