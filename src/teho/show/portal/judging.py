"""Computes the verdicts of runs in the background, so that lists can show them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from teho.errors import RecordingError
from teho.model.listed_run import Judged, ListedRun
from teho.show.portal.computed import Computed
from teho.show.portal.recordings import Recordings
from teho.store.index import content_stamp

__all__ = ["Judging"]

_BATCH = 10
_MOST_WAITING = 2_000
_MOST_SHOWN = 100
_LEAST_PAUSE_S = 0.2
_RUNNING_FRESH_S = 60.0
"""Shortest time until a run that continues is judged again."""
_RUNNING_SHARE = 0.02
"""Largest share of the time in which runs that continue are judged again. So if many runs continue,
each of them is judged again more rarely."""


class Judging:
    """A thread that judges the runs that a page has asked for, the newest request first.

    It rests for as long as it works, because a login node belongs to many users.

    Args:
        recordings: the runs.
        computed: computes the verdicts.
    """

    def __init__(self, recordings: Recordings, computed: Computed) -> None:
        self._recordings = recordings
        self._computed = computed
        self._waiting: deque[ListedRun] = deque(maxlen=_MOST_WAITING)
        self._shown: list[ListedRun] = []
        """Runs of the newest page, whose descriptions may have changed."""
        self._tried: dict[str, int] = {}
        """Directory -> stamp at which its verdict was computed, also without a result."""
        self._running: dict[str, tuple[float, Judged | None]] = {}
        """Directory of a run that continues -> when it was judged, and its newest verdict."""
        self._again_s = float("-inf")
        """Monotonic time from which runs that continue are judged again."""
        self._ready = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="judging", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ask(self, runs: Sequence[ListedRun]) -> None:
        """Have runs judged that are not judged yet, the first of them first.

        Tags that were changed on another machine are read again too.
        """
        self._shown = list(runs[:_MOST_SHOWN])
        self._ready.set()
        wanted = [
            run
            for run in runs
            if (run.outcome in {"ok", "failed"} and not run.judged) or self._is_due(run)
        ]
        # The oldest verdicts are renewed first. A run without one is in front of them.
        wanted.sort(key=self._judged_s)
        self._waiting.extend(reversed(wanted))

    def _judged_s(self, run: ListedRun) -> float:
        """Return when a run that continues was judged, in monotonic time."""
        return self._running.get(run.directory, (float("-inf"), None))[0]

    def _is_due(self, run: ListedRun) -> bool:
        """Return whether a run continues, and is to be judged now."""
        now_s, judged_s = time.monotonic(), self._judged_s(run)
        is_first = judged_s == float("-inf")
        is_old = now_s >= max(judged_s + _RUNNING_FRESH_S, self._again_s)
        return run.outcome == "running" and (is_first or is_old)

    def of_running(self, run: ListedRun) -> Judged | None:
        """Return the verdict of a run that continues, if there is one."""
        found = self._running.get(run.directory)
        return found[1] if found else None

    def stop(self) -> None:
        """End the thread after its present work."""
        self._stopped = True
        self._ready.set()

    def _work(self) -> None:
        while self._ready.wait() and not self._stopped:
            began_s = time.monotonic()
            shown, self._shown = self._shown, []
            self._recordings.renew_changed(shown)
            self._judge(self._next())
            if not self._waiting and not self._shown:
                self._ready.clear()
            time.sleep(max(_LEAST_PAUSE_S, time.monotonic() - began_s))

    def _next(self) -> list[ListedRun]:
        """Return the next runs, without those that were tried and have not changed."""
        batch: dict[str, ListedRun] = {}
        while self._waiting and len(batch) < _BATCH:
            run = self._waiting.pop()
            is_new = self._tried.get(run.directory) != content_stamp(Path(run.directory))
            # Several requests may have asked for it.
            if self._is_due(run) if run.outcome == "running" else is_new:
                batch[run.directory] = run
        return list(batch.values())

    def _judge(self, runs: list[ListedRun]) -> None:
        if not runs:
            return
        directories = [Path(run.directory) for run in runs]
        stamps = [content_stamp(directory) for directory in directories]
        self._tried.update(zip(map(str, directories), stamps, strict=True))
        began_s = time.monotonic()
        try:
            judged: list[Judged | None] = [*self._computed.judge(directories)]
        except RecordingError:
            # One of them is the reason. The others must not be left without a verdict.
            if len(runs) > 1:
                for run in runs:
                    self._judge([run])
                return
            judged = [None]
        now_s = time.monotonic()
        again = sum(self._judged_s(run) > float("-inf") for run in runs)
        used_s = (now_s - began_s) * again / len(runs)
        self._again_s = max(self._again_s, now_s) + used_s / _RUNNING_SHARE
        ended = []
        for run, one, stamp in zip(runs, judged, stamps, strict=True):
            if run.outcome == "running":
                self._running[run.directory] = now_s, one or self.of_running(run)
            elif one is not None:
                ended.append((run, one, stamp))
        if ended:
            self._recordings.save_verdicts(*map(list, zip(*ended, strict=True)))
