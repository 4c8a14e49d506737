"""The progress and the pace of a program, from the probe's files."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from teho.experiment.pace import Pace, pace_of
from teho.model.watched import Loader, WatchedProcess

__all__ = ["HasNews", "ProgressReport", "read_progress"]


class HasNews:
    """Finds out whether the probe's files have grown since the last call.

    Args:
        folder: of these files. It need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: list[tuple[str, int]] = []

    def __call__(self) -> bool:
        """Return whether a file is new or has grown."""
        seen: list[tuple[str, int]] = []
        paths: list[Path] = []
        with contextlib.suppress(FileNotFoundError):
            paths = sorted(self._folder.iterdir())
        for path in paths:
            with contextlib.suppress(FileNotFoundError):  # the recorder has moved it
                seen.append((path.name, path.stat().st_size))
        is_new, self._seen = seen != self._seen, seen
        return is_new


class ProgressReport(NamedTuple):
    """The process that trains, its pace and its loader."""

    process: WatchedProcess
    loader: Loader | None
    """The loader that gave it the most batches."""
    unit: str
    """`step`, `batch`, or empty if none was seen."""
    times_s: tuple[float, ...]
    """Monotonic time at which each step or batch was done."""
    pace: Pace | None
    ranks: int
    """Number of processes that train, each with a loader."""

    @property
    def waited(self) -> float | None:
        """Share of the window in which the process waited for batches; None without a loader."""
        if self.pace is None or self.loader is None or not self.loader.given:
            return None
        inside = (
            one.wait_s
            for one in self.loader.given
            if self.pace.from_s < one.at_s <= self.pace.until_s
        )
        return min(1.0, sum(inside) / (self.pace.until_s - self.pace.from_s))


def read_progress(found: Sequence[WatchedProcess], window_s: float) -> ProgressReport | None:
    """Return the progress of the process with the most steps; None without a process.

    Args:
        found: the processes of a program.
        window_s: how long a steady pace is measured.
    """
    process = max(found, key=_work, default=None)
    if process is None:
        return None
    steps_s = [at_s for one in process.progress for at_s in one.times_s]
    loader = max(process.loaders, key=lambda loader: loader.batches, default=None)
    given = loader.given if loader else ()
    times_s = tuple(steps_s or [one.at_s for one in given])
    return ProgressReport(
        process=process,
        loader=loader,
        unit="step" if steps_s else "batch" if given else "",
        times_s=times_s,
        pace=pace_of(times_s, [one.at_s for one in given if one.is_first], window_s),
        ranks=sum(map(any, map(_work, found))) or 1,
    )


def _work(process: WatchedProcess) -> tuple[int, int]:
    steps = max((one.steps for one in process.progress), default=0)
    return steps, max((loader.batches for loader in process.loaders), default=0)
