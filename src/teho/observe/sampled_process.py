"""One Python process whose main thread is sampled from outside."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from pathlib import Path

import msgspec

from teho.model.stack import State
from teho.observe.stays import Samples, Stays, add_samples, line_in
from teho.observe.wakeup import Core
from teho.unwind.code import THREAD
from teho.unwind.memory import UnwindError
from teho.unwind.stack import Key, Place, Unwinder, innermost_pid
from teho.unwind.tasks import Awaited, Tasks, is_in_loop
from teho.unwind.waits import Waits

__all__ = ["ProbeHead", "SampledProcess", "is_of_probe", "outer_pid"]

_CALL_EVERY = 4
"""One of this number of samples finds out whether the thread is inside a long call."""
_CHECKS = 8
"""Number of reads in a row, in about 30 µs, to find out whether a thread has not moved on."""
_MOST_WAITING = 1000


class ProbeHead(msgspec.Struct):
    """The first line of a probe's file."""

    pid: int
    python: str
    implementation: str = ""
    pid_namespace: str = ""


class SampledProcess:
    """One process, and its samples since the last write.

    Raises:
        UnwindError: its stacks cannot be read.
    """

    def __init__(self, name: str, pid: int, version: tuple[int, int], now_s: float) -> None:
        self.name = name
        self.pid = pid
        self.unwinder = Unwinder(pid, version)
        self._tasks = Tasks(self.unwinder, version)
        try:
            self.waits = Waits(pid, self.unwinder.memory)
        except UnwindError:
            self.unwinder.close()
            raise
        self.began_s = self.seen_s = self.written_s = now_s
        self.due_s = now_s
        self.ran_s, self.queued_s = self.waits.times() or (0.0, 0.0)
        self.seen: Samples = {}
        """Samples since the last write, without those of the present stay."""
        self.stays = Stays(now_s, self.waits.account())
        self.watched: dict[Place, list[int]] = {}
        """Place -> [how often the thread stayed there, how often it continued]."""
        self.core: int | None = None
        """The core on which it ran before the sample."""
        self.shares_core = False
        """Whether other processes use its core, no core is free, and it waits."""
        self.newest: tuple[Key, State] | None = None
        """The newest sample of the main thread."""
        self._waited: dict[Key, State] = {}
        """Stacks with which it waited, and for what."""
        self._turn = 0

    def close(self) -> None:
        """Close all files."""
        self.waits.close()
        self.unwinder.close()

    def join(self) -> None:
        """Add the samples of the present stay to the others."""
        add_samples(self.seen, self.stays.present.samples)
        self.stays.present.samples = {}

    @property
    def is_replaced(self) -> bool:
        """Whether the process ends, or executed another program: its memory cannot be read."""
        try:
            return not self.unwinder.memory.read(self.unwinder.thread, 8)
        except UnwindError:
            return True

    def sample(self, core: Core) -> bool:
        """Read the stack, and add the time since the last sample to it.

        Returns:
            Whether the thread has left a line in which it stayed for long.

        Raises:
            UnwindError: the process has ended.
        """
        self._turn += 1
        if self._turn % _CALL_EVERY == 0:
            self._sample_call(core)
            return False
        # The stack is read first after waking up. Any delay would let a wait end, and would count
        # the time of one line for the next.
        before = self.waits.account()
        slept = self.waits.sleeps()
        key = self.unwinder.sample()
        call, after = self.waits.call(), self.waits.account()
        awaited = self._awaited(key, before) if call and after == before else None
        state = self._state(key, before, after, call, slept=slept)
        if awaited is not None:
            key = awaited.key
            state = State.SLEEPING if awaited.sleeps else state
        now_s = time.monotonic()
        ended = self.stays.move_to(line_in(key), self.seen_s, now_s, before)
        if ended is not None:
            add_samples(self.seen, ended.samples)
        self.newest = key, state
        if state is State.THREADS:
            key = (*self._thread_in_front(), *key)
        figures = self.stays.present.samples.setdefault((key, state), [0, 0.0])
        figures[0] += 1
        figures[1] += now_s - self.seen_s
        self.seen_s = now_s
        return ended is not None and ended.writes > 0

    def _state(
        self, key: Key, before: bytes, after: bytes, call: bytes, *, slept: bool | None
    ) -> State:
        """Return what the thread did when its stack was read.

        Args:
            key: the stack.
            before: the kernel's account from before the stack was read.
            after: the kernel's account from after `call` was read.
            call: the system call in which the thread waits afterwards.
            slept: whether the thread waited just before; None if that is not known.
        """
        if call and after == before:
            state = self.waits.state(call)
            if len(self._waited) > _MOST_WAITING:
                self._waited.clear()
            self._waited[key] = state
            return state
        got_a_core = after.rpartition(b" ")[2] != before.rpartition(b" ")[2]
        if slept is None:
            slept = got_a_core
        if slept:  # and it woke up meanwhile
            known = self._waited.get(key)
            return known or (self.waits.state(call) if call else State.WAITING)
        if got_a_core or call or self.shares_core or self.waits.core() == self.core:
            return State.RUNNING
        # It ran on another core all the time, or slept on this one until the sampler used it.
        return State.MOVED

    def _awaited(self, key: Key, before: bytes) -> Awaited | None:
        """Return the stack of an event loop with the coroutines for which it waits.

        None if the thread is in no event loop, if it has not waited all the time, or if the
        coroutines are not known.

        Args:
            key: the stack.
            before: the kernel's account from before the stack was read.
        """
        if is_in_loop(key):
            with contextlib.suppress(UnwindError, ValueError, IndexError, struct.error):
                found = self._tasks.awaited(key)
                return found if self.waits.account() == before else None
        return None

    def _thread_in_front(self) -> Key:
        """Return the stack of a Python thread that runs while the main thread waits, with a mark.

        Empty if no running thread executes Python functions.
        """
        for number, thread in self.unwinder.others():
            runs = number != self.pid and self.waits.runs(number)
            with contextlib.suppress(UnwindError, ValueError, IndexError, struct.error):
                if runs and (key := self.unwinder.sample_thread(thread)) and not is_of_probe(key):
                    return (*key, (THREAD, 0))
        return ()

    def _sample_call(self, core: Core) -> None:
        """Find out from another core whether the thread stays at its place, inside one call."""
        if self.waits.call() or self.core is None or not core.avoid(self.core):
            return
        # The kernel may have moved the thread to the core of the sampler: then it cannot run now.
        if self.waits.core() != self.core:
            return
        first = self.unwinder.innermost()
        place = self.unwinder.place_in(first)
        if place is not None and not self.waits.call():
            stays = all(self.unwinder.innermost() == first for _ in range(_CHECKS))
            if self.waits.core() == self.core:
                self.watched.setdefault(place, [0, 0])[0 if stays else 1] += 1


def is_of_probe(key: Key) -> bool:
    """Return whether a stack is that of the probe's own thread."""
    begun_by = (code.file for code, _ in reversed(key) if not code.file.endswith("/threading.py"))
    return "/_teho_probe/" in next(begun_by, "")


def outer_pid(head: ProbeHead) -> int:
    """Return the pid of a process in this namespace; it may have another one in its container.

    Raises:
        UnwindError: the process is not visible here, or its Python is not CPython.
    """
    if head.implementation != "cpython":
        other = head.implementation or "an unknown implementation"
        raise UnwindError(f"the Python of the process is {other}, not CPython")
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
    raise UnwindError("the process is in a container whose processes cannot be seen from here")
