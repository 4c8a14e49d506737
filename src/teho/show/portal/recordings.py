"""The runs that a portal shows: the user's own, and those that the user's group shares."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from teho.config.settings import Settings, expanded
from teho.model.listed_run import Judged, ListedRun
from teho.show.judged import judge_of
from teho.store.index_file import HomeIndex, IndexFile
from teho.store.layout import runs_directory
from teho.store.search import Search
from teho.store.share import is_sound, shared_homes

__all__ = ["Recordings"]

_FRESH_S = 2.0
"""Time until the folders are read again."""
_SHARED_FRESH_S = 30.0


class Recordings:
    """The index, for several threads.

    Args:
        settings: the user's settings.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.runs = runs_directory(settings.home_directory)
        self.shared = expanded(settings.shared) if settings.shared else None
        """The folder of the project; None: it is not set."""
        self.judge = judge_of(settings.thresholds)
        self._lock = threading.RLock()
        self._file = IndexFile.open()
        self._own = self._file.home(self.runs)
        self._own.forget_verdicts(self.judge)
        self._group: dict[Path, HomeIndex] = {}
        self._refreshed_s = self._shared_s = float("-inf")

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Read what is new, unless this was done just before."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._refreshed_s >= _FRESH_S:
                self._own.refresh(progress)
                for other_file in (IndexFile.on_this_node, IndexFile.in_memory):
                    if not self._file.problem:
                        break
                    # A full disk must not be shown as an empty list.
                    self._file.close()
                    self._file = other_file()
                    self._own, self._group = self._file.home(self.runs), {}
                    self._shared_s = float("-inf")
                    self._own.refresh(progress)
                self._refreshed_s = time.monotonic()
            if self.shared is not None and now_s - self._shared_s >= _SHARED_FRESH_S:
                homes = {runs_directory(home) for home in shared_homes(self.shared)}
                self._group = {
                    runs: self._group.get(runs) or self._file.home(runs, check=is_sound)
                    for runs in homes
                }
                for index in self._group.values():
                    index.forget_verdicts(self.judge)
                    index.refresh(progress)
                self._shared_s = time.monotonic()

    @contextmanager
    def search(self, *, group: bool = False) -> Iterator[Search]:
        """Give queries about the own runs, or about the shared runs of the group."""
        with self._lock:
            homes = [*self._group.values()] if group else [self._own]
            yield Search(self._file, homes, self.judge)

    def find(self, run_id: str, user: str = "") -> ListedRun | None:
        """Return one run; None if it is not known, or if its files cannot be trusted.

        Args:
            run_id: the name of its folder.
            user: who shared it; empty: it is an own run.
        """
        found = None
        for _ in range(2):
            with self.search(group=bool(user)) as search:
                found = search.run(run_id, user)
            if found is None:
                # It may have begun a moment ago.
                self._refreshed_s = self._shared_s = float("-inf")
                self.refresh()
        if found is None or (user and not is_sound(Path(found.directory))):
            return None
        return found

    def renew_changed(self, runs: list[ListedRun]) -> None:
        """Read again those runs whose tags were changed after they were indexed."""
        for run in runs:
            with self._lock:
                if index := self._index_of(run):
                    index.renew_changed([run.id])

    def _index_of(self, run: ListedRun) -> HomeIndex | None:
        return self._own if run.runs == str(self.runs) else self._group.get(Path(run.runs))

    def save_verdicts(self, runs: list[ListedRun], judged: list[Judged], stamps: list[int]) -> None:
        """Store the verdicts of runs."""
        with self._lock:
            for run, one, stamp in zip(runs, judged, stamps, strict=True):
                if index := self._index_of(run):
                    index.save_verdicts(self.judge, {run.id: (stamp, one)})

    def close(self) -> None:
        """Close the index."""
        self._file.close()
