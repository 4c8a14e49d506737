"""What the probe's files say of how far a program has come, and how fast it goes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from teho.experiment.pace import Pace, pace_of
from teho.model.watched import Loader, WatchedProcess

__all__ = ["HasNews", "ProgressReport", "read_progress"]


class HasNews:
    """Tells whether the probe's files have grown since it was last asked.

    Args:
        folder: of these files; it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: list[tuple[str, int]] = []

    def __call__(self) -> bool:
        """Return whether there is something new."""
        seen: list[tuple[str, int]] = []
        paths: list[Path] = []
        with contextlib.suppress(FileNotFoundError):
            paths = sorted(self._folder.iterdir())
        for path in paths:
            with contextlib.suppress(FileNotFoundError):  # its recorder has taken it home
                seen.append((path.name, path.stat().st_size))
        is_new, self._seen = seen != self._seen, seen
        return is_new


class ProgressReport(NamedTuple):
    """The process that trains, its pace, and what gives it its batches."""

    process: WatchedProcess
    loader: Loader | None
    """The one that gave it most batches."""
    unit: str
    """`step`, `batch`, or empty if none was seen."""
    times_s: tuple[float, ...]
    """Monotonic time at which each of them was done."""
    pace: Pace | None
    ranks: int
    """Processes that train, each with a loader of its own."""

    @property
    def waited(self) -> float | None:
        """Share of the window for which batches were waited for; None without a loader."""
        if self.pace is None or self.loader is None or not self.loader.given:
            return None
        inside = (
            one.wait_s
            for one in self.loader.given
            if self.pace.from_s < one.at_s <= self.pace.until_s
        )
        return min(1.0, sum(inside) / (self.pace.until_s - self.pace.from_s))


def read_progress(found: Sequence[WatchedProcess], window_s: float) -> ProgressReport | None:
    """Return what is known of the one that has done most; None if nobody was watched.

    Args:
        found: the processes of a program.
        window_s: how long it is to be looked at once it goes steadily.
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
