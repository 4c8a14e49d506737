"""Reads facts about file systems. Each may hang, so call these functions in a separate process.

Of large folders only a sample is read.
"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from teho.devices.procfile import read_text, unescape
from teho.doctor.snapshot import DataSample, DiskQuota, Folder

__all__ = ["folder_facts", "read_quotas", "sample"]

_LISTED_MOST = 20_000
_LIST_S = 1.0
"""Time for reading names. A network file system lists some thousand names per second."""
_SIZED = 256
"""Number of files whose size is read. Each needs a request to the server."""


def folder_facts(path: str, *, is_home: bool = False) -> Folder:
    """Return a folder with the facts about its file system.

    Raises:
        OSError: the folder does not exist or cannot be read.
    """
    real = os.path.realpath(path, strict=True)
    stat = os.statvfs(real)
    mounted_on, file_system = _mount_of(real)
    conda_init = is_home and "conda initialize" in read_text(Path(real, ".bashrc"))
    return Folder(
        path=path,
        file_system=file_system,
        mounted_on=mounted_on,
        total_bytes=stat.f_blocks * stat.f_frsize,
        free_bytes=stat.f_bavail * stat.f_frsize,
        total_files=stat.f_files,
        free_files=stat.f_favail,
        is_writable=os.access(real, os.W_OK | os.X_OK),
        has_conda_init=conda_init,
    )


def sample(path: str) -> DataSample:
    """Return how many files a folder has, and how large some of them are.

    Folders are listed from the top down until there are 20,000 files or a second has passed. The
    sizes of at most 256 files, drawn at random, are read.

    Raises:
        OSError: the folder does not exist or cannot be listed.
    """
    until_s = time.monotonic() + _LIST_S
    files: list[str] = []
    is_whole = True
    for name in _file_names(path):
        if name:
            files.append(name)
        if len(files) >= _LISTED_MOST or time.monotonic() > until_s:
            is_whole = False
            break
    drawn = random.Random(0).sample(files, min(_SIZED, len(files)))  # noqa: S311 - no secret
    sizes: list[int] = []
    for name in drawn:
        if sizes and time.monotonic() > until_s + _LIST_S:
            break
        sizes.append(os.stat(name).st_size)  # noqa: PTH116 - pathlib is slower
    return DataSample(
        folder=folder_facts(path), listed=len(files), is_whole=is_whole, sizes_bytes=tuple(sizes)
    )


def _file_names(path: str) -> Iterator[str]:
    """Yield the files below a folder, and an empty name for every other entry."""
    waiting = deque([path])
    while waiting:
        top = waiting.popleft()
        try:
            entries = os.scandir(top)
        except OSError:
            if top == path:
                raise
            yield ""
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield entry.path if entry.is_file() else ""


def read_quotas(text: str) -> tuple[DiskQuota, ...]:
    """Read the output of `quota -wp` or `lfs quota -q`, which have the same columns.

    By quota(1) and lfs-quota(1), they are: file system, blocks of 1 KiB used, soft limit, hard
    limit, grace; files used, soft limit, hard limit, grace. A star marks a value over its limit.
    The lower limit counts: after the grace period, writing ends there.
    """
    found = []
    before: list[str] = []
    for line in text.splitlines():
        words = [*before, *line.replace("*", "").split()]
        # A long name is on a separate line.
        before = words if len(words) == 1 else []
        if len(words) != 9 or not all(words[i].isdecimal() for i in (1, 2, 3, 5, 6, 7)):
            continue
        blocks, *block_limits = (int(words[i]) for i in (1, 2, 3))
        files, *file_limits = (int(words[i]) for i in (5, 6, 7))
        found.append(
            DiskQuota(
                file_system=words[0],
                used_bytes=blocks * 1024,
                limit_bytes=min(filter(None, block_limits), default=0) * 1024,
                used_files=files,
                limit_files=min(filter(None, file_limits), default=0),
            )
        )
    return tuple(found)


def _mount_of(real: str) -> tuple[str, str]:
    """Return where the file system of a path is mounted, and its type (proc(5), mountinfo)."""
    best = ("", "")
    for line in read_text(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        place = unescape(fields[4])
        # If several match, the last one hides the others.
        covers = real == place or real.startswith(place.rstrip("/") + "/")
        if covers and len(place) >= len(best[0]):
            best = (place, after.split(" ")[0])
    return best
