"""Samples the stacks of a node's Python processes from outside, in a process of its own.

Each process is looked at at moments that are drawn by chance, so that no loop keeps step with them.
A look reads the stack of its main thread and what the kernel says that this thread does; see
`teho.unwind`. What is seen goes into one file in the spool, from where it is brought home.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import random
import select
import struct
import time
from collections import Counter
from pathlib import Path

import msgspec

from teho.model.watched import State
from teho.observe.stack_lines import StackLines
from teho.unwind.memory import UnwindError
from teho.unwind.stack import Key, Place, Unwinder, innermost_pid
from teho.unwind.waits import Waits

__all__ = ["StackSampler"]

_FIRST_SHARE, _LAST_SHARE, _FIRST_S, _LATER_S = 0.015, 0.001, 20.0, 0.15
"""Which share of one core looking at a process may take: at first; in the end; until when it is the
former; and divided by its time after that. Many processes together get that of as many as there
are cores."""
_LEAST_S, _MOST_S = 0.01, 1.0
"""From one look to the next."""
_FIRST_COST_S = 2e-4
_SMOOTH = 0.05
_REST_S = 0.001
_FIND_S, _FIND_RARELY_S, _FIND_SHARE = 0.05, 1.0, 1 / 20
"""From one search for new processes to the next: that share of the time without a new one, within
these limits. Until it is found a process looks at itself."""
_TRIES = 3
"""To read a process, which may just begin, or be read at a bad moment."""
_WRITE_S = 1.0
_WRITE_SHARE = 1 / 60
"""Of the time so far, from one write to the next: parts of a run keep their times."""
_MOST_PROCESSES = 1024
_TURNS = 4
"""Of so many looks one finds out whether the thread is inside a call."""
_CHECKS = 8
"""Reads in a row, in some 30 µs, that find a thread unchanged if it is."""
_MOST_WAITING = 1000
_HEAD_BYTES = 4096
_CROWDED = 0.1
"""Of the time in which a thread could run: if it had no core for more, others use it too."""
_WAITS = 0.05
"""Of all time: if a thread waits less, looks from its own core are late by chance alone."""
_IDLE = 0.25
"""Of all cores' time: if more is idle, another core may sleep, and what wakes up there is late."""


_LIBC = ctypes.CDLL(None, use_errno=True)
_TIMER = struct.Struct("@llll")
"""`struct itimerspec`: period and first time, each in s and ns."""
_ABSOLUTE = 1
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


class _Timer:
    """Wakes up at a moment, and not later.

    The timeout of select(2) may be late by a thousandth of itself, so that it is handled together
    with another timer: the one with which the program sleeps, whose end would be seen too often.
    """

    def __init__(self) -> None:
        self._descriptor = _LIBC.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)

    def wait(self, control: int, until_s: float) -> bool:
        """Wait until a monotonic time; tell whether the other end of a pipe was closed before.

        Raises:
            OSError: the kernel has no such timers.
        """
        seconds, part = divmod(max(until_s, 1e-6), 1.0)
        value = _TIMER.pack(0, 0, int(seconds), int(part * 1e9))
        if _LIBC.timerfd_settime(self._descriptor, _ABSOLUTE, value, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        return control in select.select([control, self._descriptor], [], [])[0]


class _Core:
    """Where this process wakes up: on the core of the thread that it looks at next, or beside it.

    On its core the thread cannot go on while it is looked at, so that what is read fits together,
    and it is stopped wherever it is. If another process uses the core and the thread often waits,
    the kernel owes the thread time, and lets it run until it waits before it lets us: then too many
    looks find a wait. From another core a look comes when it is due, or late whatever the thread
    does; but a stack that changes all the time can seldom be read as a whole.
    """

    def __init__(self) -> None:
        self._allowed = os.sched_getaffinity(0)
        self._now = self._allowed

    def leave(self, core: int) -> bool:
        """Go on on any other core; tell whether there is one."""
        return self._go_on_on(self._allowed - {core})

    def move_to(self, core: int) -> None:
        """Go on there, if it is allowed; if not, the thread goes on while we look."""
        self._go_on_on(self._allowed & {core})

    def _go_on_on(self, cores: set[int]) -> bool:
        if not cores:
            return False
        if cores != self._now:
            try:
                os.sched_setaffinity(0, cores)
            except OSError:
                return False
            self._now = cores
        return True


class _Idle:
    """For which share of the time this process's cores were idle, from one question to the next."""

    def __init__(self) -> None:
        self._cores = {f"cpu{core}".encode() for core in os.sched_getaffinity(0)}
        self._idle, self._all = self._counted()

    def share(self) -> float:
        """Return the share since the last question; 1 if the kernel does not report (proc(5))."""
        idle, whole = self._counted()
        before, self._idle, self._all = (self._idle, self._all), idle, whole
        return (idle - before[0]) / (whole - before[1]) if whole > before[1] else 1.0

    def _counted(self) -> tuple[int, int]:
        idle = whole = 0
        with contextlib.suppress(OSError):
            for line in Path("/proc/stat").read_bytes().splitlines():
                name, *words = line.split()
                if name in self._cores:
                    ticks = [int(word) for word in words[:8]]
                    idle += ticks[3] + ticks[4]
                    whole += sum(ticks)
        return idle, whole


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
        self.watched: dict[Place, list[int]] = {}
        """Place -> how often the thread stayed there, and how often it went on."""
        self.core: int | None = None
        """The core that it ran on before the look."""
        self.shares_core = False
        """Whether others use the core that it runs on, no core is free, and it waits."""
        self._waited: dict[Key, State] = {}
        """Stacks with which it waited, and for what."""
        self._turn = 0

    def close(self) -> None:
        self.waits.close()
        self.unwinder.close()

    def look(self, core: _Core) -> None:
        """Add the time since the last look to where the thread is now.

        Raises:
            UnwindError: the process has ended.
        """
        self._turn += 1
        if self._turn % _TURNS == 0:
            self._recorder_end(core)
            return
        # The stack is the first thing after waking up: whatever comes before it gives a wait the
        # time to end, and the next line of the program the time that this one had.
        before = self.waits.account()
        slept = self.waits.sleeps()
        key = self.unwinder.look()
        state = self._state(key, before, self.waits.call(), slept=slept)
        now_s = time.monotonic()
        figures = self.seen.setdefault((key, state), [0, 0.0])
        figures[0] += 1
        figures[1] += now_s - self.seen_s
        self.seen_s = now_s

    def _state(self, key: Key, before: bytes, call: bytes, *, slept: bool | None) -> State:
        """Return what the thread did when its stack was read.

        Args:
            key: the stack.
            before: the kernel's account from before the stack was read.
            call: in which it waits after that.
            slept: whether the thread waited just before; None if that is not known.
        """
        after = self.waits.account()
        if call and after == before:
            state = self.waits.state(call)
            if len(self._waited) > _MOST_WAITING:
                self._waited.clear()
            self._waited[key] = state
            return state
        was_given_a_core = after.rpartition(b" ")[2] != before.rpartition(b" ")[2]
        if slept is None:
            slept = was_given_a_core
        if slept:  # and was woken up meanwhile
            known = self._waited.get(key)
            return known or (self.waits.state(call) if call else State.WAITING)
        if was_given_a_core or call or self.shares_core or self.waits.core() == self.core:
            return State.RUNNING
        # It ran elsewhere all the time, or slept here until we took its core.
        return State.MOVED

    def _recorder_end(self, core: _Core) -> None:
        """Find out from another core whether the thread stays where it is, inside one call."""
        if self.waits.call() or self.core is None or not core.leave(self.core):
            return
        first = self.unwinder.innermost()
        place = self.unwinder.place_in(first)
        if place is not None and not self.waits.call():
            stays = all(self.unwinder.innermost() == first for _ in range(_CHECKS))
            self.watched.setdefault(place, [0, 0])[0 if stays else 1] += 1


class StackSampler:
    """Looks at all Python processes whose probes write into a spool.

    Args:
        spool: the folder.
        cores: that the program may use: they say what looking may cost.
    """

    def __init__(self, spool: str, cores: int) -> None:
        self._spool = Path(spool)
        self._cores = max(1, cores)
        self._processes: dict[str, _Process] = {}
        self._known: set[str] = set()
        self._changed_ns = -1
        self._lines = StackLines(self._spool)
        self._tried: Counter[str] = Counter()
        """How often those were tried in vain that may be tried once more."""
        self._began_s = self._found_s = self._written_s = time.monotonic()
        self._cost_s = _FIRST_COST_S
        self._spent_s = 0.0
        self._parent = os.getppid()
        self._core = _Core()
        self._idle = _Idle()
        self._is_busy = False
        """Whether all cores are in use."""
        self._timer = _Timer()

    def run(self, control: int) -> None:
        """Look until the other end of a pipe is closed."""
        gc.disable()  # nothing here refers to itself, and the recorder's memory stays untouched
        _ask_for_short_slices()
        self._introduce()
        try:
            self._run(control)
        except Exception as error:
            self._lines.gave_up(f"{type(error).__name__}: {error}")
            self._write()
            raise
        finally:
            with contextlib.suppress(OSError):  # the recorder may be gone
                (self._spool / "reader").unlink()
                self._spool.rmdir()

    def _run(self, control: int) -> None:
        self._spent_s = time.thread_time()
        find_s = 0.0
        while True:
            now_s = time.monotonic()
            if now_s >= find_s:
                self._find(now_s)
                quiet_s = now_s - self._found_s
                find_s = now_s + min(max(_FIND_S, _FIND_SHARE * quiet_s), _FIND_RARELY_S)
            if now_s - self._written_s >= max(_WRITE_S, _WRITE_SHARE * (now_s - self._began_s)):
                self._write()
                if os.getppid() != self._parent:  # the recorder was killed
                    return
            due = min(self._processes.values(), key=lambda one: one.due_s, default=None)
            until_s = find_s
            if due is not None:
                self._settle(due)
                # Who has just run is let in at once only after a moment.
                until_s = max(due.due_s, time.monotonic() + _REST_S)
            # Whatever comes between waking up and looking gives a wait the time to end.
            if self._timer.wait(control, until_s):
                self._write()
                return
            if due is not None:
                self._look(due)

    def _settle(self, due: _Process) -> None:
        """Go to the core from which a process is to be looked at."""
        try:
            due.core = due.waits.core()
        except UnwindError:  # it has ended, which the look will see
            return
        if not (due.shares_core and self._core.leave(due.core)):
            self._core.move_to(due.core)

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
        is_new = found.st_mtime_ns != self._changed_ns
        if found.st_uid != os.getuid() or not (is_new or self._tried):
            return
        if is_new:
            self._found_s = now_s
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
            self._tried[stem] += 1
            if self._tried[stem] < _TRIES:
                self._known.discard(stem)
            else:
                del self._tried[stem]
                self._lines.failed(stem, str(error))
            return
        self._tried.pop(stem, None)
        self._processes[stem] = process
        self._lines.began(stem, now_s)
        with contextlib.suppress(OSError):
            # The probe sees it, and looks no more itself.
            descriptor = os.open(self._spool / f"{stem}.seen", os.O_CREAT | os.O_WRONLY, 0o600)
            os.close(descriptor)

    def _look(self, process: _Process) -> None:
        try:
            process.look(self._core)
        except (UnwindError, ValueError, IndexError, struct.error):
            # For a moment nothing fits together; an end is seen by what the kernel says.
            if not Path(f"/proc/{process.pid}").exists() or _is_replaced(process):
                self._end(process)
                return
        now_s, spent_s = time.monotonic(), time.thread_time()
        # All that was done since the last look, of this process or another: waking up too.
        cost_s, self._spent_s = min(spent_s - self._spent_s, 10 * self._cost_s), spent_s
        self._cost_s += _SMOOTH * (cost_s - self._cost_s)
        share = _share(now_s - process.began_s) * min(1.0, self._cores / len(self._processes))
        period_s = min(max(_LEAST_S, self._cost_s / share), _MOST_S)
        process.due_s = now_s + period_s * random.uniform(0.5, 1.5)  # noqa: S311 - no secret

    def _end(self, process: _Process) -> None:
        self._tell(process)
        process.close()
        del self._processes[process.name]

    def _tell(self, process: _Process) -> None:
        if not process.seen:
            return
        now_s = time.monotonic()
        about = {"from_s": round(process.told_s, 4), "until_s": round(now_s, 4)}
        times = process.waits.times()
        if times is not None:
            ran_s, queued_s = times
            queued_s, ran_s = queued_s - process.queued_s, ran_s - process.ran_s
            about |= {"queued_s": round(queued_s, 4), "ran_s": round(ran_s, 4)}
            process.ran_s, process.queued_s = times
            could_run_s = queued_s + ran_s
            is_queued = queued_s > _CROWDED * could_run_s
            waits = could_run_s < (1 - _WAITS) * (now_s - process.told_s)
            process.shares_core = is_queued and waits and self._is_busy
        self._lines.saw(process.name, process.pid, process.seen, process.watched, about)
        process.seen, process.watched = {}, {}
        process.told_s = now_s

    def _write(self) -> None:
        self._written_s = time.monotonic()
        self._is_busy = self._idle.share() < _IDLE
        for process in self._processes.values():
            self._tell(process)
        self._lines.flush(time.thread_time())


def _share(elapsed_s: float) -> float:
    return _FIRST_SHARE if elapsed_s < _FIRST_S else max(_LAST_SHARE, _LATER_S / elapsed_s)


def _is_replaced(process: _Process) -> bool:
    """Return whether a process ends, or has become another program: its memory is gone."""
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
