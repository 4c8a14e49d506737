"""The parts of the host: each reads some metrics from files that stay open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.devices.procfile import ProcFile
from teho.model.device import Reading
from teho.model.missing import Missing

__all__ = ["FilePart", "Part", "Traffic"]


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


class FilePart(Part):
    """A part whose metrics are in one file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = self._open(path)

    def read(self) -> dict[str, Reading]:
        """Return the present readings; all are missing if the file cannot be read."""
        data = self._file.read()
        return self._all(data) if isinstance(data, Missing) else self.values_in(data)

    def values_in(self, data: bytes) -> dict[str, Reading]:
        """Return the readings in the content of the file."""
        raise NotImplementedError


class Traffic:
    """The sums of counters of bytes in both directions, such as read and written.

    Args:
        metrics: of both directions.
    """

    def __init__(self, metrics: Sequence[str]) -> None:
        self._metrics = metrics
        self._sums = [0, 0]
        self._last: dict[str, tuple[int, int]] = {}

    def add(self, counters: Mapping[str, tuple[int, int]]) -> dict[str, Reading]:
        """Add the present state of the counters, and return the sums. These never fall.

        A counter that fell has started again (a reset, a new mount). A counter that is gone keeps
        its count.
        """
        for key, counts in counters.items():
            before = self._last.get(key, (0, 0))
            for place, (count, last) in enumerate(zip(counts, before, strict=True)):
                self._sums[place] += count - last if count >= last else count
            self._last[key] = counts
        return dict(zip(self._metrics, self._sums, strict=True))
