"""A thread that writes what the probe notes, and looks at the main thread's stack if it must.

It must until the node's recorder reads the stack from outside, and if that is not possible. What
it sees is biased: it can look when the program lets go of Python's lock, or after 5 ms. What it
costs is bounded: it looks less often if that takes longer. A stack is kept as its code and places
in it, and put into words when it is written. What is used of other modules is bound here, before a
program such as gevent puts something else in its place.
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
"""From when on it looks less often, the longer the less, and how many times the period in the end:
what goes on in the long run shows all the same."""
_COST_SHARE = 0.002
"""Of the time, at most: less than half of what the whole probe may take, 0.5 %."""
_TOLD_S = 0.2
"""After so long a process is made known: those that are forked for a small thing leave no file."""
_GRACE_S = 0.05
"""What it may take beyond that, to set itself up."""
_SLOWEST = 10
"""Times the period, at most."""
_WRITE_S = 1.0, 1.0 if os.environ.get("TEHO_PROBE_STEPS") else 10.0
"""From one write to the next: as long as it was to the first of the two, within these. `teho tune`
waits for what is written."""
_WRITE_SHARE = 1 / 720
"""Of the time so far, from one write to the next at most: from two hours on it is more than
10 s, so that weeks fit into a file."""
_DEPTH = 64
_MOST_STACKS = 5000
"""Between two writes."""
_HELD_S = 0.002
"""Python lets another thread in after 5 ms (sys.getswitchinterval), or when the one that runs
waits or leaves Python. Who comes in later than this has waited for Python code."""
_GONE_WAIT_S = 1.0
_HANGS = sys.version_info < (3, 12)


def _silent(method: Callable[..., None]) -> Callable[..., None]:
    """Let nothing that goes wrong in a method reach the program, whose business it is not."""

    def call(*given: Any) -> None:
        try:
            method(*given)
        except Exception:  # see above
            return

    return call


class Sampler:
    """Looks at the thread that made it, and writes what is noted meanwhile."""

    def __init__(self, folder: str, notes: Notes) -> None:
        self._folder = folder
        self._notes = notes
        self._begin()

    def _begin(self) -> None:
        self._thread_id = get_ident()
        self._wake: Any = None
        """Ends the wait of the thread that looks, and tells it from one that came before it."""
        self._stacks: Stacks = {}
        self._newest: Stack = ()
        self._is_outside = False
        """Whether the stack is read from outside by now."""
        self._cost_s = 0.0
        self._began_s = self._seen_s = self._written_s = monotonic()
        self._lines = Lines(self._folder, self._began_s)
        self._is_finished = False
        self._native_id: int | None = None
        self._cpu_clock = pthread_getcpuclockid(self._thread_id)
        self._cpu_s = clock_gettime(self._cpu_clock)

    @_silent
    def start(self) -> None:
        """Begin to look, or go on."""
        # A signal for the process must never come to this thread: the program may wait for it
        # with all its own threads' masks set.
        mask = pthread_sigmask(SIG_BLOCK, ())
        try:
            pthread_sigmask(SIG_BLOCK, valid_signals())  # raises what a handler of hers raises
            wake = allocate_lock()
            wake.acquire()
            self._wake, self._native_id = wake, None
            start_new_thread(self._watch, (wake,))
        except Exception as error:  # no more threads may be had
            self._wake = None
            self._notes.failed("a thread to look from", error)
        finally:
            pthread_sigmask(SIG_SETMASK, mask)

    @_silent
    def stop(self) -> None:
        """Stop looking until `start`, and wait until the thread is gone."""
        wake, self._wake = self._wake, None
        if wake is None:
            return
        wake.release()
        until_s = monotonic() + _GONE_WAIT_S
        # Where several threads fork at once, another may have begun to look again.
        while self._wake is None and self._is_there() and monotonic() < until_s:
            sleep(0.0001)

    @_silent
    def pause(self) -> None:
        """Stop, in a thread that is about to fork, and see it do so."""
        self.stop()
        if not self._is_outside:
            self._look(monotonic(), 0.0)

    @_silent
    def go_on(self) -> None:
        """Start again after a fork, which took the time since `pause`."""
        self._add(self._newest, monotonic(), 0.0)
        self.start()

    def _is_there(self) -> bool:
        return self._native_id is None or os.path.exists("/proc/self/task/%d" % self._native_id)

    @_silent
    def begin_anew(self) -> None:
        """In a forked child: what was seen until now is the parent's."""
        self._notes.begin_anew()
        self._begin()
        self.start()

    @_silent
    def finish(self) -> None:
        """Write what is not written yet; the process ends."""
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
                    self._is_outside = self._lines.is_seen_from_outside
                if not self._is_outside:
                    self._look(now_s, now_s - due_s)
                    if now_s - self._began_s >= _TOLD_S:
                        self._lines.begin()
                most_s = max(_WRITE_S[1], (now_s - self._began_s) * _WRITE_SHARE)
                every_s = min(max(_WRITE_S[0], self._written_s - self._began_s), most_s)
                if now_s - self._written_s >= every_s:
                    self._write(now_s)
                self._cost_s = before_s + thread_time()
                allowed_s = _GRACE_S + _COST_SHARE * (now_s - self._began_s)
                # Until what was spent is allowed.
                over_s = (self._cost_s - allowed_s) / _COST_SHARE
                usual = min(max(1.0, (now_s - self._began_s) / _CLOSE_S), _CALM)
                usual_s = every_s if self._is_outside else usual * _PERIOD_S
                period_s = min(max(usual_s, over_s), max(every_s, _SLOWEST * _PERIOD_S))
        except Exception as error:  # it becomes a line of the report, now or at the end
            self._newest = ()
            self._notes.failed("no more looks", error)
            self._write(monotonic())

    def _look(self, now_s: float, late_s: float) -> None:
        """Add the time since the last look to where the thread is now."""
        frame = _frame_of(self._thread_id)
        while frame is not None and frame.f_code.co_filename == __file__:  # it looks at itself
            frame = frame.f_back
        key: list[tuple[CodeType, int]] = []
        while frame is not None and len(key) < _DEPTH:
            key.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
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
        words = self._notes.words()
        if self._lines.write(self._stacks, words, now_s, self._cost_s, is_end=is_end):
            # A stack that was not seen since the last time is let go, with its code.
            self._stacks = {}
        else:
            self._notes.tell_again()


def _frame_of(thread_id: int) -> Any:
    """Return where a thread is; None if to ask would do harm.

    Without a GIL, or with several interpreters, Python may crash (python/cpython#118680, #158364).
    Before 3.12 garbage may be collected meanwhile, and it may hang (#106883).
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
