"""The parts of the host: each reads some metrics from files that stay open."""

from __future__ import annotations

from pathlib import Path

from teho.devices.procfile import ProcFile
from teho.model.device import Reading
from teho.model.missing import Missing

__all__ = ["Part"]


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
