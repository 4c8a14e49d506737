"""Samples the stacks of a node's Python processes from outside, in a separate process.

The times of the samples are random, so that they do not fall into step with a loop. A sample has
the stack of the main thread, and the kernel's report of what this thread does; see `teho.unwind`.
The samples are written to one file in the spool. The recorder copies it into the recording.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import socket
import struct
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec

from teho.model.live import LineNow
from teho.observe.present_lines import MOST_LINES, LineAnswers
from teho.observe.sampled_process import ProbeHead, SampledProcess, outer_pid
from teho.observe.stack_lines import StackLines
from teho.observe.stay_details import death_of, details_of
from teho.observe.stays import line_in
from teho.observe.wakeup import Core, IdleTime, Timer, request_short_slices
from teho.unwind.memory import UnwindError
from teho.unwind.waits import times_in

__all__ = ["StackSampler"]

_FIRST_SHARE, _LAST_SHARE, _FIRST_S, _LATER_S = 0.015, 0.001, 20.0, 0.15
"""Maximum cost of sampling one process, as a share of one core: in the first `_FIRST_S` seconds,
and at the end. Between them it is `_LATER_S` divided by the time so far. If there are more
processes than cores, all together may cost as much as one process per core."""
_LEAST_S, _MOST_S = 0.01, 1.0
"""Minimum and maximum time between two samples."""
_FIRST_COST_S = 2e-4
_SMOOTH = 0.05
_REST_S = 0.001
_FIND_S, _FIND_RARELY_S, _FIND_SHARE = 0.05, 1.0, 1 / 20
"""Time between two searches for new processes: this share of the time without a new one, within
these limits. Until a process is found, its probe takes the samples."""
_TRIES = 3
"""Reading a process may fail while it starts, or at an unlucky moment."""
_WRITE_S = 1.0
_WRITE_SHARE = 1 / 60
"""Time between two writes, as a share of the time so far. Reports divide a run into parts."""
_WATCHED_S, _WATCHED_SHARE = 15.0, 1 / 600
"""The same while a viewer watches the run: it shows what the processes did last."""
_SPLIT_S = 4.0
"""If a thread has stayed in one line for this time, what was before it is another slice: the last
45 s of a run that is stuck must have almost nothing else."""
_MOST_PROCESSES = 1024
_HEAD_BYTES = 4096
_CROWDED = 0.1
"""Share of the time in which a thread could run. If it waited longer for its core, other processes
use this core too."""
_WAITS = 0.05
"""Share of the time: if a thread waits less, delays of samples from its core are random."""
_IDLE = 0.25
"""Share of all cores' time. If more is idle, other cores may sleep, and wake up late."""


class StackSampler:
    """Samples all Python processes whose probes write into a spool.

    Args:
        spool: the folder.
        cores: the number of cores that the program may use. It limits the cost.
        urgent: a pipe that gets a byte after something is written that cannot wait. None: none.
        lines: a socket of the recorder that asks for the present lines. None: none.
    """

    def __init__(
        self,
        spool: str,
        cores: int,
        urgent: int | None = None,
        lines: socket.socket | None = None,
    ) -> None:
        self._spool = Path(spool)
        self._cores = max(1, cores)
        self._urgent = urgent
        self._answers = LineAnswers(lines)
        self._processes: dict[str, SampledProcess] = {}
        self._known: set[str] = set()
        self._changed_ns = -1
        self._lines = StackLines(self._spool)
        self._tried: Counter[str] = Counter()
        """Number of failed tries of each process that will be tried again."""
        self._began_s = self._found_s = self._written_s = time.monotonic()
        self._cost_s = _FIRST_COST_S
        self._spent_s = 0.0
        self._parent = os.getppid()
        self._core = Core()
        self._idle = IdleTime()
        self._is_busy = False
        """Whether all cores are in use."""
        self._timer = Timer()

    def run(self, control: int) -> None:
        """Take samples until the other end of a pipe is closed."""
        gc.disable()  # the code makes no reference cycles, and the recorder's memory stays shared
        request_short_slices()
        self._write_pid()
        try:
            self._run(control)
        except Exception as error:
            self._lines.gave_up(f"{type(error).__name__}: {error}")
            self._write()
            raise
        finally:
            with contextlib.suppress(OSError):  # the recorder may have ended
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
            if self._answers.is_due(now_s):
                self._send_lines(now_s)
            if now_s - self._written_s >= self._pause_s(now_s):
                self._write()
                if os.getppid() != self._parent:  # the recorder was killed
                    return
            due = min(self._processes.values(), key=lambda one: one.due_s, default=None)
            until_s = find_s
            if due is not None:
                self._choose_core(due)
                # The kernel delays a process that has just run.
                until_s = max(due.due_s, time.monotonic() + _REST_S)
            # The sample must follow directly after waking up: meanwhile a wait could end.
            if self._timer.wait(control, until_s):
                for process in self._processes.values():
                    self._add_lines(process)
                self._lines.search_sources()
                self._write()
                return
            if due is not None:
                self._sample(due)

    def _pause_s(self, now_s: float) -> float:
        """Return the time between two writes."""
        elapsed_s = now_s - self._began_s
        pause_s = max(_WRITE_S, _WRITE_SHARE * elapsed_s)
        if self._answers.is_watched(now_s) and self._lines.has_room:
            return min(pause_s, max(_WATCHED_S, _WATCHED_SHARE * elapsed_s))
        return pause_s

    def _send_lines(self, now_s: float) -> None:
        """Send the lines in which the oldest processes are."""
        oldest = islice(self._processes.values(), MOST_LINES)
        lines = {process.pid: self._line_of(process, now_s) for process in oldest}
        self._answers.send(now_s, {pid: line for pid, line in lines.items() if line is not None})

    def _line_of(self, process: SampledProcess, now_s: float) -> LineNow | None:
        """Return the line in which a process is; None before its first sample."""
        if process.newest is None:
            return None
        (key, state), stay = process.newest, process.stays.present
        line = line_in(key)
        places = [*key[:1], *([line] if line is not None and line != key[0] else [])]
        # It may leave the line of a long stay for a moment.
        since_s = stay.began_s if line == stay.line else stay.left_s or now_s
        frames = [
            self._lines.frame_at(process.name, process.pid, place, is_innermost=number == 0)
            for number, place in enumerate(places)
        ]
        return LineNow(frames=tuple(frames), state=state, stayed_s=round(now_s - since_s, 1))

    def _choose_core(self, due: SampledProcess) -> None:
        """Move to the core from which a process is to be sampled."""
        try:
            due.core = due.waits.core()
        except UnwindError:  # it has ended; the sample notices it
            return
        if not (due.shares_core and self._core.avoid(due.core)):
            self._core.move_to(due.core)

    def _write_pid(self) -> None:
        """Write the sampler's pid, for processes that have to permit the reading."""
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
        """Add the processes whose probes have begun to write."""
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
                self._add(stem, now_s)

    def _add(self, stem: str, now_s: float) -> None:
        try:
            with (self._spool / f"{stem}.jsonl").open("rb") as file:
                line, ended, _ = file.read(_HEAD_BYTES).partition(b"\n")
            if not ended:
                return
            head = msgspec.json.decode(line, type=ProbeHead)
            version = tuple(int(part) for part in head.python.split(".")[:2])
        except (OSError, ValueError, msgspec.MsgspecError):
            self._known.add(stem)
            return
        self._known.add(stem)
        try:
            process = SampledProcess(stem, outer_pid(head), (version[0], version[1]), now_s)
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
            # The probe sees this file, and stops sampling.
            descriptor = os.open(self._spool / f"{stem}.seen", os.O_CREAT | os.O_WRONLY, 0o600)
            os.close(descriptor)

    def _sample(self, process: SampledProcess) -> None:
        began_s, has_left = time.monotonic(), False
        try:
            has_left = process.sample(self._core)
        except (UnwindError, ValueError, IndexError, struct.error):
            # Memory that is read while it changes is inconsistent. The kernel knows an end.
            if not Path(f"/proc/{process.pid}").exists() or process.is_replaced:
                self._end(process)
                return
        self._write_stay(process, began_s, has_left=has_left)
        now_s, spent_s = time.monotonic(), time.thread_time()
        # The cost of all work since the last sample of any process, including waking up.
        cost_s, self._spent_s = min(spent_s - self._spent_s, 10 * self._cost_s), spent_s
        self._cost_s += _SMOOTH * (cost_s - self._cost_s)
        share = _share(now_s - process.began_s) * min(1.0, self._cores / len(self._processes))
        period_s = min(max(_LEAST_S, self._cost_s / share), _MOST_S)
        process.due_s = now_s + period_s * random.uniform(0.5, 1.5)  # noqa: S311 - no secret

    def _write_stay(self, process: SampledProcess, now_s: float, *, has_left: bool) -> None:
        """Write the samples of a process that stays in one line, or that has continued after this.

        Args:
            process: the process.
            now_s: monotonic time.
            has_left: whether the process has just left the line.
        """
        stay = process.stays.present
        is_due = stay.is_due(now_s)
        if not (is_due or has_left or now_s >= process.stays.after_s):
            return
        if is_due or has_left:  # what was before the stay is another slice
            self._add_slice(process, stay.began_s, times_in(stay.account))
        if is_due:
            found = details_of(process)
            self._lines.stays(process.name, process.pid, (stay.began_s, now_s), *found)
        if has_left:
            self._lines.left(process.name)
        else:
            self._add_lines(process)
            process.stays.after_s = float("inf")
        self._lines.flush(time.thread_time())
        if self._urgent is not None:
            with contextlib.suppress(OSError):  # the recorder has not read the bytes before
                os.write(self._urgent, b".")

    def _end(self, process: SampledProcess) -> None:
        self._add_lines(process)
        status = death_of(process.pid)
        # A process that executes another program continues.
        if status is not None or not Path(f"/proc/{process.pid}").exists():
            self._lines.ended(process.name, time.monotonic(), status)
        process.close()
        del self._processes[process.name]

    def _add_lines(self, process: SampledProcess) -> None:
        stay = process.stays.present
        if time.monotonic() - stay.began_s >= _SPLIT_S:
            self._add_slice(process, stay.began_s, times_in(stay.account))
        process.join()
        self._add_slice(process, time.monotonic(), process.waits.times())

    def _add_slice(
        self, process: SampledProcess, now_s: float, times: tuple[float, float] | None
    ) -> None:
        """Add the samples of a process since the last slice.

        Args:
            process: the process.
            now_s: the end of the slice.
            times: how long its main thread had run then, and how long it had waited for a core.
        """
        if not process.seen:
            return
        figures = {"from_s": round(process.written_s, 4), "until_s": round(now_s, 4)}
        if times is not None:
            ran_s, queued_s = times
            queued_s, ran_s = queued_s - process.queued_s, ran_s - process.ran_s
            figures |= {"queued_s": round(queued_s, 4), "ran_s": round(ran_s, 4)}
            process.ran_s, process.queued_s = times
            could_run_s = queued_s + ran_s
            is_queued = queued_s > _CROWDED * could_run_s
            waits = could_run_s < (1 - _WAITS) * (now_s - process.written_s)
            process.shares_core = is_queued and waits and self._is_busy
        self._lines.add(process.name, process.pid, process.seen, process.watched, figures)
        process.seen, process.watched = {}, {}
        process.written_s = now_s

    def _write(self) -> None:
        self._written_s = time.monotonic()
        self._is_busy = self._idle.share() < _IDLE
        for process in self._processes.values():
            self._add_lines(process)
        self._lines.flush(time.thread_time())


def _share(elapsed_s: float) -> float:
    return _FIRST_SHARE if elapsed_s < _FIRST_S else max(_LAST_SHARE, _LATER_S / elapsed_s)
