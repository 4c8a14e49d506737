"""Starts the profiler of the program's framework for some steps, and stops it: `teho profile`.

The plan is JSON, in the variable `TEHO_PROFILE` from the start of the program, or in the file
`profile.json` of the probe's folder while the program runs:

    id        name of the plan
    first     number of the first step to record; null: see `count` and `window_s`
    last      number of the last one
    count     number of steps to record from now on; null: see `first`
    window_s  time to record, without steps; null: steps
    after_s   time before the window, from the import of the framework. If JAX compiles for most
              of the window, another window is recorded instead, at most 3 times. While JAX
              compiles, no window begins
    with      list of what else to record: `stack`, `shapes`, `memory`; `range`: only mark the
              steps, for a tool that runs the program
    ranks     `one` (rank 0), `all`, or a list of ranks
    most_s, most_bytes  limits of the recorded time, and of the size of the file

A step ends when the probe counts it. So step N is the time between the counts N - 1 and N. The
profiler starts and stops in the thread that makes the steps, because it records this thread. For
other moments, such as the end of a window, Python calls it in the main thread, as it calls the
handler of a signal.
"""

from __future__ import annotations

import os
from _thread import get_ident
from time import monotonic

from _teho_probe.lines import TYPE_CHECKING, error_text
from _teho_probe.surroundings import (
    call_in_main_thread,
    compile_s,
    framework_of,
    free_bytes,
    is_compiling,
    is_helper,
    is_importing,
    other_tool,
    rank_of,
    used_bytes,
)

if TYPE_CHECKING:
    from typing import Any, Callable

    from _teho_probe.notes import Notes

__all__ = ["Obstacle", "Profiling"]

_WAITING, _WARM, _RECORDING, _DONE = range(4)
_TICK_S, _WAITING_S = 0.05, 0.5
"""Time between two checks of the probe's thread: while the profiler records, and before."""
_SPARE_BYTES = 256 * 1024**2
"""Space that must be free after the trace is written."""
_MOST_WINDOWS = 4
_LONGEST_WAIT_S = 120
"""Longest time for which a window waits until JAX has compiled."""
_COMPILING = 0.5
"""Share of a window: with so much compiling, it says little about the steps."""
_MEMORY = 4
"""Memory for events, as a multiple of the largest file."""


class Obstacle(Exception):  # noqa: N818 - not an error of the program
    """Why the profiler cannot start; its text is a code, and after a colon a detail."""


class Profiling:
    """One plan in one process.

    Args:
        folder: the probe's folder, for the trace.
        notes: of this process.
        text: the plan.
    """

    def __init__(self, folder: str, notes: Notes, text: str) -> None:
        from json import loads

        self._folder = folder
        self._notes = notes
        self._plan: dict[str, Any] = loads(text)
        self._first: int | None = self._plan.get("first")
        self._last: int | None = self._plan.get("last")
        self._window_s: float | None = self._plan.get("window_s")
        self._phase = _WAITING
        self._count = notes.steps
        self._thread: int | None = None
        """The thread that is recorded."""
        self._tracer: Any = None
        self._is_requested = False
        """Whether the main thread has been asked to start or to stop."""
        self._is_inside = False
        """Whether the profiler is being started or stopped."""
        self._has_claim = False
        """Whether no other process of this node records for the same rank."""
        self._seen_s: float | None = None
        """When the framework was seen first."""
        self._began_s = 0.0
        self._compile_s = 0.0
        """How long JAX had compiled before the recording."""
        self._windows = 0
        self._asked_s: float | None = None
        """When the window was to begin first."""
        self._memory_bytes = 0
        self._steps: list[int] = []
        """First and last step that were recorded as a whole."""
        self._marked: int | None = None
        """Number of the step that is being recorded."""
        self._over = ""
        """Why the recording ends with the present step."""

    # ---- called by the probe ----

    @property
    def is_over(self) -> bool:
        """Whether this plan needs nothing more of the program."""
        return self._phase == _DONE

    @property
    def is_active(self) -> bool:
        """Whether the profiler is prepared, or records."""
        return self._phase in (_WARM, _RECORDING)

    def accept(self) -> None:
        """Note that this process has the plan, if it may record: a worker never does."""
        if self._count or (self._window_s is not None and not is_helper()):
            self._notes.profiled(
                {"profile": self._plan["id"], "rank": rank_of(), "why": "accepted"}
            )

    def stepped(self, count: int) -> None:
        """Note that the program has finished a step, in the thread that made it.

        Args:
            count: its number.
        """
        if self._phase == _DONE or self._is_inside:
            return
        if self._thread is not None and get_ident() != self._thread:
            return
        try:
            self._is_inside = True
            self._at_step(count)
        except Exception as error:
            self._failed(error)
        finally:
            self._is_inside = False

    def tick(self, now_s: float) -> float:
        """Check the limits, in the probe's thread; return the longest time until the next check.

        Args:
            now_s: monotonic time.
        """
        try:
            self._check(now_s)
        except Exception as error:
            if self._phase == _RECORDING:  # only the recorded thread can stop the profiler
                self._over, self._is_requested = "error", True
            else:
                self._failed(error)
        is_near = self._phase == _RECORDING or self._window_s is not None
        return _TICK_S if is_near else _WAITING_S

    def finish(self) -> None:
        """Stop at the end of the process, and write what was recorded."""
        if self._phase not in (_WARM, _RECORDING):
            return
        if get_ident() == self._thread:
            self._call(lambda: self._stop("ended"))
        else:  # only that thread could stop the profiler
            self._end("ended")

    def forked(self) -> None:
        """Do not record a forked child of a process that is being recorded."""
        self._count = 0
        if self._phase in (_WARM, _RECORDING):
            self._phase = _DONE
            self._tracer.forked()

    # ---- steps ----

    def _at_step(self, count: int) -> None:
        if count <= self._count:
            self._restart()
        self._count = count
        if self._phase == _RECORDING:
            self._step_recorded(count)
            return
        if self._window_s is not None:
            return
        if self._first is None:
            self._first = count + 2
            self._last = count + 1 + int(self._plan["count"])
        if count >= self._first:
            self._end("passed", detail=str(count))
        elif count == self._first - 2:
            self._prepare()
        elif count == self._first - 1:
            if self._phase == _WAITING:
                self._prepare()
            if self._phase == _WARM:
                self._start()

    def _restart(self) -> None:
        """Discard what was recorded, and begin again.

        The program has called `teho.step()`, and its steps count from 1, or JAX has compiled.
        """
        if self._phase in (_WARM, _RECORDING):
            self._leave_exit()
            self._tracer.discard()
            self._phase, self._thread, self._marked, self._steps = _WAITING, None, None, []

    def _step_recorded(self, count: int) -> None:
        if self._marked is not None:
            self._steps = [self._steps[0] if self._steps else count, count]
        over = self._over or self._limit(monotonic())
        if over or (self._last is not None and count >= self._last):
            self._stop("" if over == "window" or count == self._last else over)
        else:
            self._mark(count + 1)

    def _mark(self, number: int) -> None:
        self._marked = number
        self._tracer.mark(number)

    # ---- a window of time, and limits ----

    def _check(self, now_s: float) -> None:
        if self._phase == _RECORDING:
            why = self._limit(now_s)
            if why and not self._is_requested:
                self._over = why
                if self._thread == self._notes.main_thread:
                    self._is_requested = True
                    call_in_main_thread(lambda: self._call(self._limit_reached))
        elif self._phase == _WAITING and self._window_s is not None and not self._is_requested:
            if self._seen_s is None and framework_of(self._notes) is not None:
                self._seen_s = now_s
            after_s = float(self._plan.get("after_s") or 0.0)
            if self._seen_s is not None and now_s >= self._seen_s + after_s:
                self._is_requested = True
                call_in_main_thread(lambda: self._call(self._begin_window))

    def _limit(self, now_s: float) -> str:
        """Return why the recording must end now; empty if it continues."""
        spent_s = now_s - self._began_s
        if self._window_s is not None and spent_s >= self._window_s:
            return "window"
        if spent_s >= float(self._plan["most_s"]):
            return "time"
        used = used_bytes() if self._memory_bytes else 0
        if used - self._memory_bytes > _MEMORY * int(self._plan["most_bytes"]):
            return "memory"
        return ""

    def _begin_window(self) -> None:
        if self._asked_s is None:
            self._asked_s = monotonic()
        has_time = monotonic() - self._asked_s < _LONGEST_WAIT_S
        if has_time and (is_compiling() or is_importing()):
            self._is_requested = False  # the next check asks again
            return
        if is_helper():
            self._phase = _DONE
        if self._phase == _WAITING:
            self._prepare()
        if self._phase == _WARM:
            self._start()
        self._is_requested = False

    def _limit_reached(self) -> None:
        if self._phase != _RECORDING:
            return
        if self._over == "window" and self._windows < _MOST_WINDOWS and self._has_compiled():
            self._restart()
            self._over, self._is_requested = "", False
            self._plan["after_s"], self._seen_s = 0.0, monotonic()
        else:
            self._stop("" if self._over == "window" else self._over)

    def _has_compiled(self) -> bool:
        """Return whether JAX compiled for most of the window."""
        least_s = _COMPILING * (monotonic() - self._began_s)
        return is_compiling() or compile_s(self._notes) - self._compile_s >= least_s

    def _call(self, action: Callable[[], None]) -> None:
        """Do something outside of `stepped`; errors must not reach the program."""
        if self._is_inside:
            # The main thread is just at a step. A limit ends the recording there.
            self._is_requested = False
            return
        try:
            self._is_inside = True
            action()
        except Exception as error:
            self._failed(error)
        finally:
            self._is_inside = False

    # ---- the profiler ----

    def _prepare(self) -> None:
        """Choose this process or not, and prepare the profiler: its start can take seconds."""
        rank = rank_of()
        ranks = self._plan["ranks"]
        chosen = ranks == "all" or (rank or 0) in ([0] if ranks == "one" else ranks)
        self._has_claim = self._has_claim or (chosen and self._claim(rank))
        if not self._has_claim:
            self._phase = _DONE
            return
        is_range = "range" in self._plan["with"]
        make = framework_of(self._notes, is_range=is_range)
        tool = other_tool()
        if make is None:
            self._end("framework")
        elif tool and not is_range:
            self._end("tool", detail=tool)
        else:
            self._thread = get_ident()
            self._tracer = make(self._plan, self._displaced)
            try:
                self._tracer.prepare()
            except Obstacle as obstacle:
                code, _, detail = str(obstacle).partition(":")
                self._end(code, detail=detail)
            else:
                self._phase = _WARM

    def _claim(self, rank: int | None) -> bool:
        """Return whether no other process of this node records for the same rank."""
        name = "profile-%s-%s.claim" % (self._plan["id"], "none" if rank is None else rank)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            os.makedirs(self._folder, 0o700)  # a short program has not written anything yet
        except FileExistsError:
            pass
        if os.lstat(self._folder).st_uid != os.getuid():
            return False  # /tmp belongs to all users
        try:
            os.close(os.open(os.path.join(self._folder, name), flags, 0o600))
        except FileExistsError:
            return False
        return True

    def _start(self) -> None:
        from atexit import register

        register(self.finish)  # before the exit handlers of libraries that were registered earlier
        self._memory_bytes = used_bytes()
        self._tracer.start()
        self._phase, self._began_s = _RECORDING, monotonic()
        self._compile_s = compile_s(self._notes)
        self._windows += 1
        if self._window_s is None:
            self._mark(self._count + 1)

    def _stop(self, why: str) -> None:
        """Stop the profiler, and write the trace.

        Args:
            why: code of the reason for an early end; empty: all was recorded.
        """
        was_recording, self._phase = self._phase == _RECORDING, _DONE
        self._leave_exit()
        if not was_recording:
            self._tracer.discard()
            self._end(why)
            return
        ended_s = monotonic()
        self._tracer.stop(self._steps)
        stopped_s = monotonic()
        facts: dict[str, Any] = {
            "began_s": round(self._began_s, 4),
            "ended_s": round(ended_s, 4),
            "stop_s": round(stopped_s - ended_s, 4),
        }
        try:
            if self._tracer.writes:
                facts["file"], facts["bytes"] = self._save()
                facts["save_s"] = round(monotonic() - stopped_s, 4)
        except Obstacle as obstacle:
            why, _, facts["detail"] = str(obstacle).partition(":")
        finally:
            self._tracer.release()
        self._end(why, **facts)

    def _save(self) -> tuple[str, int]:
        """Write the trace, and return the name and the size of its file."""
        most = int(self._plan["most_bytes"])
        expected = self._tracer.expected_bytes()
        if expected > most:
            raise Obstacle("size:%d" % expected)
        free = free_bytes(self._folder)
        if free < expected + _SPARE_BYTES:
            raise Obstacle("disk:%d" % free)
        rank = rank_of()
        who = "single" if rank is None else "rank%d" % rank
        name = "trace-%s-%d-%s" % (who, os.getpid(), self._plan["id"])
        path = os.path.join(self._folder, name)
        try:
            self._tracer.save(path + ".part")
            size = os.stat(path + ".part").st_size
            if size > most:
                raise Obstacle("size:%d" % size)
            if free_bytes(self._folder) < _SPARE_BYTES:  # the size was not known exactly
                raise Obstacle("disk:%d" % free)
            os.replace(path + ".part", path + self._tracer.ending)
        except OSError:  # the profiler may leave no file at all
            raise Obstacle("written") from None
        finally:
            for left in (path + ".part", path + ".part.tmp"):  # Kineto's own file has `.tmp`
                if os.path.exists(left):
                    os.unlink(left)
        return name + self._tracer.ending, size

    def _displaced(self) -> None:
        """Stop, because the program starts its own profiler now."""
        if self._phase in (_WARM, _RECORDING):
            self._phase = _DONE
            self._leave_exit()
            self._tracer.discard()
            self._end("displaced")

    def _leave_exit(self) -> None:
        from atexit import unregister

        unregister(self.finish)

    def _failed(self, error: Exception) -> None:
        """Note an error, and give up."""
        self._phase = _DONE
        try:
            self._leave_exit()
            if self._tracer is not None and self._tracer.is_active:
                self._tracer.discard()
        except Exception:
            pass
        self._end("error", detail=error_text(error))

    def _end(self, why: str, **facts: Any) -> None:
        """Note how it ended."""
        self._phase = _DONE
        tracer = self._tracer
        self._notes.profiled({
            "profile": self._plan["id"],
            "rank": rank_of(),
            "framework": tracer.framework if tracer is not None else "",
            "steps": self._steps or None,
            "in_step": self._marked,
            "why": why,
            **facts,
        })  # fmt: skip
