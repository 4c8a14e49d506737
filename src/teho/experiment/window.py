"""Ends a program when its pace is known, or after a set time."""

from __future__ import annotations

import math
import os
import time
from functools import partial
from pathlib import Path

from teho.experiment.progress import HasNews, read_progress
from teho.experiment.started import end_marked
from teho.observe.spool import mark_of
from teho.process.child import detach_streams, fork_child
from teho.process.json_lines import wait_for
from teho.store.probe import processes_in

__all__ = ["AT_LIMIT", "ENOUGH", "POLL_S", "Enough", "Window"]

ENOUGH = "measured long enough"
"""The reason in `End.on_purpose` if a program was ended because its pace is known."""
AT_LIMIT = "stopped after the set time"
"""The same if it was ended after the time of `--for`."""
_LAG_S = 5.0
"""Tasks start at different moments: if one ends at its limit, the others end up to this earlier."""
POLL_S = 0.2
"""Time between two checks."""
_NICE = 19
"""The watching process may share the program's only core, and must not slow it down."""
_PATIENCE_S = 10.0
"""Time limit for the watching process, because reading /proc may hang."""


class Enough:
    """Finds out whether a program's pace is known, from its probes' files.

    Args:
        spool: folder of these files.
        window_s: how long a steady pace is measured; None: never long enough.
    """

    def __init__(self, spool: str, window_s: float | None) -> None:
        self._spool = Path(spool)
        self._window_s = window_s
        self._has_news = HasNews(self._spool)

    def __call__(self) -> bool:
        """Return whether the pace is known now."""
        if self._window_s is None or not self._has_news():
            return False
        report = read_progress(processes_in(self._spool, []), self._window_s)
        return bool(report and report.pace and report.pace.is_whole)


class Window:
    """A process that ends the program of a `teho run` once its pace is known, or after a time.

    It ends when `leave` is called, and when its parent process ends.

    Args:
        spool: folder of the probes' files.
        window_s: how long a steady pace is measured; None: it does not end the program.
        limit_s: time after which the program is ended; None: never.
        shared: whether the program is one of several tasks: then another task's process may end it.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        spool: str,
        window_s: float | None,
        limit_s: float | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._ended_by_others_s = math.inf
        if limit_s is not None and shared:
            self._ended_by_others_s = time.monotonic() + limit_s - _LAG_S
        stop, self._stop = os.pipe()
        self._answer_end, answer_end = os.pipe()
        self.pid = fork_child(partial(_watch, spool, window_s, limit_s, stop, answer_end))
        os.close(stop)
        os.close(answer_end)

    def leave(self) -> str:
        """Stop watching, and return why the program was ended on purpose; empty: it was not.

        Raises:
            RuntimeError: the program could not be watched.
        """
        os.close(self._stop)
        if not wait_for([self._answer_end], _PATIENCE_S):
            raise RuntimeError(f"the step counter did not answer within {_PATIENCE_S:g} s")
        answer = os.read(self._answer_end, 4096).decode()
        if answer not in {"", ENOUGH, AT_LIMIT}:
            raise RuntimeError(answer)
        if not answer and time.monotonic() >= self._ended_by_others_s:
            return AT_LIMIT
        return answer


def _watch(
    spool: str, window_s: float | None, limit_s: float | None, stop: int, answer_end: int
) -> None:
    try:
        detach_streams(keep=(stop, answer_end))
        os.nice(_NICE)
        until_s = math.inf if limit_s is None else time.monotonic() + limit_s
        os.write(
            answer_end, _end_it(Enough(spool, window_s), mark_of(spool), stop, until_s).encode()
        )
    except Exception as error:  # noqa: BLE001 - any error becomes a line
        os.write(answer_end, repr(error).encode())


def _end_it(is_enough: Enough, mark: str, stop: int, until_s: float) -> str:
    while not wait_for([stop], POLL_S):
        why = ENOUGH if is_enough() else AT_LIMIT if time.monotonic() >= until_s else ""
        if why:
            return why if end_marked(mark) else ""
    return ""
