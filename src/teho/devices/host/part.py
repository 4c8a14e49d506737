"""The parts of the host: each reads some metrics from files that stay open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teho.devices.procfile import ProcFile
from teho.model.device import Reading
from teho.model.missing import Missing

__all__ = ["Part", "Traffic"]


class Part:
    """One subject of the host, such as its disks.

    Attributes:
        metrics: the metrics that `read` returns.
    """

    metrics: tuple[str, ...]

    def __init__(self) -> None:
        self._opened: list[ProcFile] = []

    def read(self) -> dict[str, Reading]:
        """Return the present readings."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all files; a later reading opens them again."""
        for file in self._opened:
            file.close()

    def _open(self, path: Path) -> ProcFile:
        """Return a file that `close` closes."""
        self._opened.append(ProcFile(path))
        return self._opened[-1]

    def _all(self, missing: Missing) -> dict[str, Reading]:
        """Return all metrics as missing."""
        return dict.fromkeys(self.metrics, missing)


class Traffic(Part):
    """A part with two metrics, which are bytes in both directions, such as read and written."""

    def __init__(self) -> None:
        super().__init__()
        self._sums = [0, 0]
        self._last: dict[str, tuple[int, int]] = {}

    def totals(self, counters: Mapping[str, tuple[int, int]]) -> dict[str, Reading]:
        """Add the present state of the counters, and return their sums. These never fall.

        A counter that fell has started again (a reset, a new mount). A counter that is gone keeps
        its count.
        """
        for key, counts in counters.items():
            before = self._last.get(key, (0, 0))
            for place, (count, last) in enumerate(zip(counts, before, strict=True)):
                self._sums[place] += count - last if count >= last else count
            self._last[key] = counts
        return dict(zip(self.metrics, self._sums, strict=True))
