"""Kernel files that are read again and again, and counters that are added up.

Opening a file under /proc costs more than reading it; a file kept open and read
with `pread` is made again by the kernel at every read from offset 0.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from teho.model.missing import Missing, Reason

__all__ = ["ProcFile", "Total", "missing_because", "read_text", "unescape", "words_of"]

_CHUNK = 1 << 16
_REASONS = {
    errno.EACCES: Reason.FORBIDDEN,
    errno.EPERM: Reason.FORBIDDEN,
    errno.ENOENT: Reason.ABSENT,
    errno.ENOTDIR: Reason.ABSENT,
    errno.ENODEV: Reason.ABSENT,
    errno.ENXIO: Reason.ABSENT,
    errno.ESRCH: Reason.ABSENT,
    errno.EINVAL: Reason.UNSUPPORTED,
    errno.ENOSYS: Reason.UNSUPPORTED,
    errno.EOPNOTSUPP: Reason.UNSUPPORTED,
}


def missing_because(error: OSError, path: str | Path) -> Missing:
    """Return why a file did not read, as a value."""
    reason = _REASONS.get(error.errno or 0, Reason.FAILED)
    return Missing(reason, f"{path}: {os.strerror(error.errno or 0)}")


def read_text(path: Path) -> str:
    """Return a small file's text, stripped; empty if it does not read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def words_of(data: bytes, name: bytes) -> list[bytes]:
    """Return the words behind a name that begins a line; empty if no line begins with it.

    To split all lines of 256 cores would cost more.
    """
    name += b" "
    start = 0 if data.startswith(name) else data.find(b"\n" + name) + 1
    if not data.startswith(name, start):
        return []
    start += len(name)
    end = data.find(b"\n", start)
    return data[start : end if end >= 0 else None].split()


def unescape(word: str) -> str:
    """Undo the octal escapes for blanks in the kernel's mount tables (see proc(5))."""
    if "\\" not in word:
        return word
    for octal, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(octal, char)
    return word


class ProcFile:
    """One kernel file, opened at the first read and kept open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def read(self) -> bytes | Missing:
        """Return the whole content as it is now, or why it does not read."""
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            data = os.pread(self._fd, _CHUNK, 0)
            # One read returns about a page of a file with many records, however much is asked.
            while more := os.pread(self._fd, _CHUNK, len(data)):
                data += more
        except OSError as error:
            self.close()
            return missing_because(error, self.path)
        return data

    def close(self) -> None:
        """Close it; the next read opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Total:
    """The sum of counters that come, go and start again; it never falls."""

    def __init__(self) -> None:
        self._sum = 0
        self._last: dict[str, int] = {}

    def add(self, counters: Mapping[str, int]) -> int:
        """Take the counters' present state and return the sum of all that they counted.

        One that fell has started again (a reset, a new mount), one that is gone
        keeps what it had counted.
        """
        for key, value in counters.items():
            last = self._last.get(key, 0)
            self._sum += value - last if value >= last else value
            self._last[key] = value
        return self._sum
