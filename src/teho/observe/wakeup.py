"""Lets a sampler wake up exactly when it is due, on a chosen core."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import select
import struct
import time
from pathlib import Path

__all__ = ["Core", "IdleTime", "Timer", "request_short_slices"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_TIMER = struct.Struct("@llll")
"""`struct itimerspec`: period and first time, each in s and ns."""
_SCHED_ATTR = struct.Struct("@IIQiIQQQ")
"""The first version of `struct sched_attr` of sched_setattr(2): size, policy, flags, nice,
priority, runtime, deadline, period."""
_ABSOLUTE = 1
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_PR_SET_TIMERSLACK = 29
_SLICE_NS = 100_000
"""The kernel's minimum (sched(7), EEVDF)."""


def request_short_slices() -> None:
    """Ask the kernel to run this process for a short time as soon as it wakes up.

    If a sampler has to wait for a free core, it samples the program only while this waits, never
    while it computes. From Linux 6.12 on, any process may request short slices. Schedulers before
    6.6 prefer processes that have slept.
    """
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        policy = os.sched_getscheduler(0)
        wanted = _SCHED_ATTR.pack(_SCHED_ATTR.size, policy, 0, nice, 0, _SLICE_NS, 0, 0)
        _LIBC.syscall(number, 0, wanted, 0)


class Timer:
    """A timer without slack.

    The kernel may delay the timeout of select(2) by 0.1 %, to handle it together with another
    timer. If this is the timer with which the program sleeps, the end of the sleep would be
    sampled too often.
    """

    def __init__(self) -> None:
        self._descriptor = _LIBC.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)

    def wait(self, control: int, until_s: float) -> bool:
        """Wait until a monotonic time; return whether a pipe can be read before.

        Raises:
            OSError: the kernel does not support these timers.
        """
        seconds, part = divmod(max(until_s, 1e-6), 1.0)
        value = _TIMER.pack(0, 0, int(seconds), int(part * 1e9))
        if _LIBC.timerfd_settime(self._descriptor, _ABSOLUTE, value, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        return control in select.select([control, self._descriptor], [], [])[0]


class Core:
    """The core on which this process wakes up.

    On the core of the sampled thread, the thread is stopped, so that its stack is consistent.
    There is one exception: if other processes use this core and the thread often waits, the
    kernel lets the thread run until it waits, and then this process. Too many samples are then
    waits. From another core, the delay of a sample does not depend on the thread. But a stack
    that changes all the time can rarely be read completely from there.
    """

    def __init__(self) -> None:
        self._allowed = os.sched_getaffinity(0)
        self._now = self._allowed

    def avoid(self, core: int) -> bool:
        """Move to any other core; return whether there is one."""
        return self._move(self._allowed - {core})

    def move_to(self, core: int) -> None:
        """Move to a core, if this process may use it."""
        self._move(self._allowed & {core})

    def _move(self, cores: set[int]) -> bool:
        if not cores:
            return False
        if cores != self._now:
            try:
                os.sched_setaffinity(0, cores)
            except OSError:
                return False
            self._now = cores
        return True


class IdleTime:
    """The share of time in which this process's cores are idle, from one call to the next."""

    def __init__(self) -> None:
        self._cores = {f"cpu{core}".encode() for core in os.sched_getaffinity(0)}
        self._idle, self._all = self._counted()

    def share(self) -> float:
        """Return the share since the last call; 1 if the kernel does not report it (proc(5))."""
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
