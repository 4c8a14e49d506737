"""Finds the plans of `teho profile` for this process: in its environment, or in the probe's folder.

Without a plan, this costs the program one comparison a step, and one `stat` a second.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.permit import read_file

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

__all__ = ["Plans"]

_CHECK_S = 1.0
_CALM_S = 2.0
"""Time between two checks of the probe's thread, if there is no plan."""


class Plans:
    """The newest plan, and what it needs of each step.

    Args:
        folder: the probe's folder.
        notes: of this process.
    """

    def __init__(self, folder: str, notes: Notes) -> None:
        self._folder = folder
        self._notes = notes
        self._path = os.path.join(folder, "profile.json")
        self._lock = allocate_lock()
        self._checked_s = 0.0
        self._stamp = 0
        self._profiling: Any = None
        text = os.environ.get("TEHO_PROFILE")
        if text:
            self._begin(text)

    @property
    def is_active(self) -> bool:
        """Whether a profiler is prepared, or records."""
        return self._profiling is not None and bool(self._profiling.is_active)

    def stepped(self, count: int, now_s: float) -> None:
        """Note that the program has finished a step.

        Args:
            count: its number.
            now_s: monotonic time.
        """
        if now_s - self._checked_s >= _CHECK_S:
            self._check(now_s)
        if self._profiling is not None:
            self._profiling.stepped(count)

    def tick(self, now_s: float) -> float:
        """Check the limits and for a plan, in the probe's thread; return when to call again, in s.

        Args:
            now_s: monotonic time.
        """
        if now_s - self._checked_s >= _CHECK_S:
            self._check(now_s)
        if self._profiling is None or self._profiling.is_over:
            return _CALM_S
        wait_s: float = self._profiling.tick(now_s)
        return wait_s

    def finish(self) -> None:
        """End a recording at the end of the process."""
        if self._profiling is not None:
            self._profiling.finish()

    def forked(self) -> None:
        """Forget the recording of the parent, in a forked child."""
        self._lock = allocate_lock()
        if self._profiling is not None:
            self._profiling.forked()

    def _check(self, now_s: float) -> None:
        """Read the file if it is new. Two threads call this: only one of them may read it."""
        if not self._lock.acquire(False):
            return
        try:
            self._checked_s = now_s
            try:
                found = os.stat(self._path)
            except OSError:
                return
            stamp = found.st_mtime_ns
            if stamp != self._stamp and found.st_uid == os.getuid():
                self._stamp = stamp
                self._begin(read_file(self._path), is_request=True)
        finally:
            self._lock.release()

    def _begin(self, text: str, *, is_request: bool = False) -> None:
        try:
            from _teho_probe.profiling import Profiling

            if self._profiling is None or self._profiling.is_over:
                self._profiling = Profiling(self._folder, self._notes, text)
                if is_request:
                    self._profiling.accept()
        except Exception as error:
            self._notes.failed("the plan of the profiler", error)
