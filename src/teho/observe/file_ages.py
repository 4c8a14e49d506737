"""How old the samples in the files of a run are."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from teho.store.layout import live_parts, sealed_file

__all__ = ["FileAges", "rows_written_s"]


class FileAges:
    """The ages of samples that a viewer reads from files.

    The clock of a node can differ from the clock of this machine, and on some file systems it sets
    the times of files. So what this viewer saw counts more than a time: if a sample was not there
    when the viewer read before, the sample is not older than that reading. Only the first sample of
    a node needs the time of its file. This time is compared with the time that the same file system
    gave to a file of this viewer.
    """

    def __init__(self) -> None:
        self._ahead_s = time.time() - time.monotonic()
        """Time of the file system minus the monotonic time of this machine."""
        self._read_s: dict[str, float] = {}

    def compare(self, written: Path) -> None:
        """Compare the clocks: this viewer has just written a file."""
        with contextlib.suppress(OSError):
            self._ahead_s = written.stat().st_mtime - time.monotonic()

    def age_s(self, place: str, written_s: float) -> float:
        """Return the age of a sample that was not there at the last reading.

        Args:
            place: file or rows of a node.
            written_s: time of the file, in s since 1970.
        """
        now_s = time.monotonic()
        by_clock_s = max(0.0, now_s + self._ahead_s - written_s)
        return min(by_clock_s, now_s - self._read_s.get(place, float("-inf")))

    def note_read(self, place: str) -> None:
        """Note that the viewer has read a place now."""
        self._read_s[place] = time.monotonic()


def rows_written_s(directory: Path, node: str) -> float:
    """Return when the newest rows of a node were written, in s since 1970; 0: there are none."""
    sealed = sealed_file(directory, node)
    paths = [sealed] if sealed.exists() else live_parts(directory, node)
    with contextlib.suppress(OSError, IndexError):
        return paths[-1].stat().st_mtime
    return 0.0
