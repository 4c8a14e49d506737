"""A thread that writes the probe's notes, and samples the main thread's stack if necessary.

It samples until the node's sampler reads the stack from outside, or if that is not possible. Its
samples are biased: they are taken when the program releases Python's lock, or after 5 ms. Its cost
is limited: if samples take longer, it takes fewer. A stack is kept as code objects and
instructions, and described when it is written. Functions of other modules are imported by name,
because a library such as gevent may replace them later.
"""

from __future__ import annotations

import os
import sys
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread
from gc import disable, enable, isenabled
from time import clock_gettime, monotonic, pthread_getcpuclockid, sleep, thread_time

from _teho_probe.ending import last_exception
from _teho_probe.lines import TYPE_CHECKING, Lines

if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable

    from _teho_probe.lines import Stack, Stacks
    from _teho_probe.notes import Notes

__all__ = ["Sampler"]

_PERIOD_S = 0.05
_CLOSE_S, _CALM = 20.0, 4
"""From this time on, the period increases, up to this factor: a long run needs fewer samples."""
_COST_SHARE = 0.002
"""Maximum share of the time: less than half of the whole probe's limit, 0.5 %."""
_FILE_S = 0.2
"""A process gets a file after this time: processes forked for a small task leave none."""
_GRACE_S = 0.05
"""Additional cost that is allowed, for the start."""
_SLOWEST = 10
"""Maximum factor of the period."""
_WRITE_S = 1.0, 1.0 if os.environ.get("TEHO_PROBE_STEPS") else 10.0
"""Minimum and maximum time between two writes. Within these limits, it is as long as the time so
far. `teho tune` waits for the lines."""
_WRITE_SHARE = 1 / 720
"""The maximum time between two writes, as a share of the time so far, if this is longer. So the
lines of some weeks fit into a file."""
_DEPTH = 64
_MOST_STACKS = 5000
"""Maximum number of stacks between two writes."""
_HELD_S = 0.002
"""Another thread can run after 5 ms (sys.getswitchinterval), or when the running one waits or
leaves Python. If a sample is later than this, Python code was running."""
_GONE_WAIT_S = 1.0
_PLAN_S = 1.0
"""A shorter time between two checks of `Plans` means that it has a plan of `teho profile`."""
_HANGS = sys.version_info < (3, 12)


def _silent(method: Callable[..., None]) -> Callable[..., None]:
    """Suppress all exceptions of a method, so that none reaches the program."""

    def call(*given: Any) -> None:
        try:
            method(*given)
        except Exception:
            return

    return call


class Sampler:
    """Samples the thread that created it, and writes the notes."""

    def __init__(self, folder: str, notes: Notes) -> None:
        self._folder = folder
        self._notes = notes
        self._begin()

    def _begin(self) -> None:
        self._thread_id = get_ident()
        self._wake: Any = None
        """A lock whose release ends the sampling thread; each such thread has another one."""
        self._stacks: Stacks = {}
        self._newest: Stack = ()
        self._is_outside = False
        """Whether the stack is now read from outside."""
        self._cost_s = 0.0
        self._began_s = self._seen_s = self._written_s = monotonic()
        self._lines = Lines(self._folder, self._began_s)
        self._is_finished = False
        self._native_id: int | None = None
        self._cpu_clock = pthread_getcpuclockid(self._thread_id)
        self._cpu_s = clock_gettime(self._cpu_clock)

    @_silent
    def start(self) -> None:
        """Start the sampling thread."""
        # This thread must not receive a signal for the process: the program may wait for the
        # signal after it has blocked it in all its threads.
        mask = pthread_sigmask(SIG_BLOCK, ())
        try:
            pthread_sigmask(SIG_BLOCK, valid_signals())  # may raise an exception of a handler
            wake = allocate_lock()
            wake.acquire()
            self._wake, self._native_id = wake, None
            start_new_thread(self._watch, (wake,))
        except Exception as error:  # no thread can be started
            self._wake = None
            self._notes.failed("the sampling thread", error)
        finally:
            pthread_sigmask(SIG_SETMASK, mask)

    @_silent
    def stop(self) -> None:
        """Stop sampling until `start`, and wait until the thread has ended."""
        wake, self._wake = self._wake, None
        if wake is None:
            return
        wake.release()
        until_s = monotonic() + _GONE_WAIT_S
        # If several threads fork at the same time, another one may have started it again.
        while self._wake is None and self._is_there() and monotonic() < until_s:
            sleep(0.0001)

    @_silent
    def pause(self) -> None:
        """Stop before a fork, and sample it."""
        self.stop()
        if not self._is_outside:
            self._sample(monotonic(), 0.0)

    @_silent
    def resume(self) -> None:
        """Start again after a fork. The fork took the time since `pause`."""
        self._add(self._newest, monotonic(), 0.0)
        self.start()

    def _is_there(self) -> bool:
        return self._native_id is None or os.path.exists("/proc/self/task/%d" % self._native_id)

    @_silent
    def restart(self) -> None:
        """Start again in a forked child, without the parent's samples."""
        self._notes.restart()
        self._begin()
        self.start()

    @_silent
    def finish(self) -> None:
        """Write the rest at the end of the process."""
        if self._is_finished:
            return
        self._is_finished = True
        self.stop()
        now_s = monotonic()
        self._add(self._newest, now_s, 0.0)
        try:
            self._notes.ended_by = last_exception()
        except Exception as error:
            self._notes.failed("the last exception", error)
        self._write(now_s, is_end=True)

    @_silent
    def _watch(self, wake: Any) -> None:
        try:
            self._native_id = get_native_id()
            period_s, before_s = _PERIOD_S, self._cost_s
            while self._wake is wake:
                due_s = monotonic() + period_s
                if wake.acquire(True, period_s):
                    return
                now_s = monotonic()
                if not self._is_outside:
                    self._is_outside = self._lines.is_sampled_from_outside
                if not self._is_outside:
                    self._sample(now_s, now_s - due_s)
                    if now_s - self._began_s >= _FILE_S:
                        self._lines.begin()
                most_s = max(_WRITE_S[1], (now_s - self._began_s) * _WRITE_SHARE)
                every_s = min(max(_WRITE_S[0], self._written_s - self._began_s), most_s)
                if now_s - self._written_s >= every_s or self._notes.is_urgent:
                    self._write(now_s)
                self._cost_s = before_s + thread_time()
                allowed_s = _GRACE_S + _COST_SHARE * (now_s - self._began_s)
                # The time after which the cost so far is within the limit.
                over_s = (self._cost_s - allowed_s) / _COST_SHARE
                usual = min(max(1.0, (now_s - self._began_s) / _CLOSE_S), _CALM)
                usual_s = every_s if self._is_outside else usual * _PERIOD_S
                period_s = min(max(usual_s, over_s), max(every_s, _SLOWEST * _PERIOD_S))
                if self._notes.plans is not None:
                    check_s = self._notes.plans.tick(now_s)
                    # Samples may cost more than checks: without a plan, they set the period.
                    if self._is_outside or check_s < _PLAN_S:
                        period_s = min(period_s, check_s)
        except Exception as error:  # the report gets a line about it, now or at the end
            self._newest = ()
            self._notes.failed("sampling ended", error)
            self._write(monotonic())

    def _sample(self, now_s: float, late_s: float) -> None:
        """Add the time since the last sample to the present stack."""
        frame = _frame_of(self._thread_id)
        key: list[tuple[CodeType, int]] = []
        try:
            while frame is not None and frame.f_code.co_filename == __file__:  # the probe itself
                frame = frame.f_back
            while frame is not None and len(key) < _DEPTH:
                key.append((frame.f_code, frame.f_lasti))
                frame = frame.f_back
        except AttributeError:  # seen once: a frame whose predecessor was no frame
            return
        self._newest = tuple(key)
        self._add(self._newest, now_s, late_s)

    def _add(self, key: Stack, now_s: float, late_s: float) -> None:
        if self._is_outside:
            return
        seen = self._stacks.get(key)
        if seen is None:
            if len(self._stacks) >= _MOST_STACKS:
                key = ()
            seen = self._stacks.setdefault(key, [0, 0.0, 0.0, 0.0])
        spent_s = now_s - self._seen_s
        self._seen_s = now_s
        seen[0] += 1
        seen[1] += spent_s
        cpu_s = clock_gettime(self._cpu_clock)
        seen[2] += cpu_s - self._cpu_s
        self._cpu_s = cpu_s
        if late_s > _HELD_S:
            seen[3] += spent_s

    def _write(self, now_s: float, *, is_end: bool = False) -> None:
        self._written_s = now_s
        self._notes.is_urgent = False
        lines = self._notes.new_lines()
        if self._lines.write(self._stacks, lines, now_s, self._cost_s, is_end=is_end):
            self._stacks = {}  # this also frees the code objects of old stacks
        else:
            self._notes.mark_unwritten()


def _frame_of(thread_id: int) -> Any:
    """Return the frame of a thread; None if reading it could do harm.

    Without a GIL, or with several interpreters, Python may crash (python/cpython#118680, #158364).
    Before 3.12, a garbage collection meanwhile may block it forever (#106883).
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    if "_interpreters" in sys.modules or "_xxsubinterpreters" in sys.modules:
        return None
    if not (_HANGS and isenabled()):
        return sys._current_frames().get(thread_id)
    disable()
    try:
        return sys._current_frames().get(thread_id)
    finally:
        enable()
