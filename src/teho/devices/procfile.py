"""Files in /proc and /sys that are read repeatedly.

Opening a file in /proc takes longer than reading it. If a file stays open, the kernel creates its
content again at every `pread` from offset 0.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from teho.model.missing import Missing, Reason

__all__ = [
    "KeptFile",
    "ProcFile",
    "has_host_pids",
    "missing_because",
    "names_in",
    "number_in",
    "optional_number",
    "parse_number",
    "read_text",
    "slurp",
    "unescape",
    "words_of",
]

_CHUNK = 1 << 16
_PAGE_BYTES = 4096
_MOST_DIGITS = 18
"""Numbers with this many digits fit a signed 64-bit column. Real values are smaller."""
_HOST_PIDS = "pid:[4026531836]"
"""The host's PID namespace: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h."""
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
    """Return a missing value that says why a file cannot be read."""
    reason = _REASONS.get(error.errno or 0, Reason.FAILED)
    return Missing(reason, f"{path}: {os.strerror(error.errno or 0)}")


def read_text(path: Path) -> str:
    """Return a small file's text, stripped; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def names_in(directory: str | Path) -> list[str]:
    """Return the names in a folder; empty if it cannot be listed."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are wanted
    except OSError:
        return []


def has_host_pids(root: str) -> bool | None:
    """Return whether this process has the host's process ids; None if that is not known."""
    try:
        return os.readlink(f"{root}/proc/self/ns/pid") == _HOST_PIDS  # noqa: PTH115
    except OSError:
        return None


def words_of(data: bytes, name: bytes) -> list[bytes]:
    """Return the words after a name at the beginning of a line; empty if no line has it.

    This is faster than splitting all lines of 256 cores.
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


def slurp(path: str) -> bytes:
    """Return a file's first 4 KiB: one page, which is all that the kernel writes to most files."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, _PAGE_BYTES, 0)
    finally:
        os.close(descriptor)


def parse_number(answer: bytes) -> int:
    """Return the whole number in a file's content.

    Raises:
        ValueError: the content is not a number, or has too many digits.
    """
    text = answer.strip()
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        words = text.decode("ascii", "backslashreplace")
        raise ValueError(f"'{words}' is not a number of 1 to {_MOST_DIGITS} digits")
    return int(text)


def number_in(path: str) -> int:
    """Open, read and close a file with one whole number.

    Raises:
        OSError: the kernel refuses.
        ValueError: the content is not a number.
    """
    return parse_number(slurp(path))


def optional_number(path: str) -> int | None:
    """Return the whole number in a file; None if it cannot be read."""
    try:
        return number_in(path)
    except (OSError, ValueError):
        return None


class KeptFile:
    """One kernel file, opened at the first read and kept open."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._descriptor = -1

    @property
    def is_open(self) -> bool:
        """Whether it was opened, and not closed since."""
        return self._descriptor >= 0

    def page(self, size: int = _PAGE_BYTES) -> bytes:
        """Return the first bytes of the present content; by default one page.

        Raises:
            OSError: the kernel refuses.
        """
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_RDONLY)
        return os.pread(self._descriptor, size, 0)

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class ProcFile(KeptFile):
    """A file that may be longer than a page."""

    def read(self) -> bytes | Missing:
        """Return the whole present content, or why it cannot be read."""
        try:
            data = self.page(_CHUNK)
            # For a file with many records, one read returns about a page, whatever its size.
            while more := os.pread(self._descriptor, _CHUNK, len(data)):
                data += more
        except OSError as error:
            self.close()
            return missing_because(error, self.path)
        return data
