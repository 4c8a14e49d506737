"""When a program's pace is known, and a process beside it that ends it then."""

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
"""Why a program was ended whose pace is known, as `End.on_purpose` has it."""
POLL_S = 0.2
"""How often to look whether it is."""
_NICE = 19
"""It may have to share the program's only core, whose pace is what counts."""
_PATIENCE_S = 10.0
"""For which the process beside may go on: to read of others may hang, as they themselves may."""


class Enough:
    """Tells whether a program's pace is known, by what its probes write.

    Args:
        spool: where they write.
        window_s: how long its steps are looked at; None: it is never enough.
    """

    def __init__(self, spool: str, window_s: float | None) -> None:
        self._spool = Path(spool)
        self._window_s = window_s
        self._has_news = HasNews(self._spool)

    def __call__(self) -> bool:
        """Return whether it is known by now."""
        if self._window_s is None or not self._has_news():
            return False
        sight = read_progress(processes_in(self._spool, []), self._window_s)
        return bool(sight and sight.pace and sight.pace.is_whole)


class Window:
    """A process that ends the program of a `teho run` once its pace is known.

    It goes when it is told to, and when who began it is no more.

    Args:
        spool: where the program's probes write.
        window_s: how long its steps are looked at once it goes steadily.

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
        """Look no more, and return why the program was ended on purpose; empty: it was not.

        Raises:
            RuntimeError: why the program could not be looked at.
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
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a line
        os.write(say, repr(error).encode())


def _end_it(is_enough: Enough, mark: str, stop: int) -> str:
    while not wait_for([stop], POLL_S):
        if is_enough():
            return ENOUGH if end_marked(mark) else ""
    return ""
