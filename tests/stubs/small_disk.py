"""A small file system in memory, for tests with a disk that is full."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["fill", "small_disk"]

_PAGE_BYTES = 4096


@contextlib.contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[None]:
    """Mount it on a folder.

    Raises:
        OSError: the kernel does not permit it.
    """
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", str(folder)]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        raise OSError(mounted.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write a file until no byte is free; return its path."""
    path = folder / "data of a job"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        state = os.statvfs(folder)
        most = state.f_bavail * state.f_frsize - 16 * _PAGE_BYTES
        if most > 0:  # faster than to write
            os.posix_fallocate(file.fileno(), 0, most)
            file.seek(most)
        while file.write(bytes(_PAGE_BYTES)):
            pass
    return path
