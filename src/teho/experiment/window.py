"""Finds out when a program's pace is known, and ends the program then."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from teho.experiment.progress import HasNews, read_progress
from teho.experiment.started import end_marked
from teho.observe.spool import mark_of
from teho.process.child import detach_streams, fork_child
from teho.process.json_lines import wait_for
from teho.store.probe import processes_in

__all__ = ["ENOUGH", "POLL_S", "Enough", "Window"]

ENOUGH = "measured long enough"
"""The reason in `End.on_purpose` if a program was ended because its pace is known."""
POLL_S = 0.2
"""Time between two looks."""
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
    """A process that ends the program of a `teho run` once its pace is known.

    It ends when `leave` is called, and when its parent process ends.

    Args:
        spool: folder of the probes' files.
        window_s: how long a steady pace is measured.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, spool: str, window_s: float) -> None:
        stop, self._stop = os.pipe()
        self._said, say = os.pipe()
        fork_child(partial(_watch, spool, window_s, stop, say))
        os.close(stop)
        os.close(say)

    def leave(self) -> str:
        """Stop watching, and return why the program was ended on purpose; empty: it was not.

        Raises:
            RuntimeError: the program could not be watched.
        """
        os.close(self._stop)
        if not wait_for([self._said], _PATIENCE_S):
            raise RuntimeError(f"no answer within {_PATIENCE_S:g} s")
        said = os.read(self._said, 4096).decode()
        if said not in {"", ENOUGH}:
            raise RuntimeError(said)
        return said


def _watch(spool: str, window_s: float, stop: int, say: int) -> None:
    try:
        detach_streams(keep=(stop, say))
        os.nice(_NICE)
        os.write(say, _end_it(Enough(spool, window_s), mark_of(spool), stop).encode())
    except Exception as error:  # noqa: BLE001 - any error becomes a line
        os.write(say, repr(error).encode())


def _end_it(is_enough: Enough, mark: str, stop: int) -> str:
    while not wait_for([stop], POLL_S):
        if is_enough():
            return ENOUGH if end_marked(mark) else ""
    return ""
