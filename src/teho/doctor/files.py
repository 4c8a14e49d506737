"""Looks at file systems, each of which may hang: every function here is for a process of its own.

What is large is sampled, never walked.
"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from pathlib import Path

from teho.devices.procfile import read_text, unescape
from teho.doctor.snapshot import DataSample, DiskQuota, Folder

__all__ = ["look_at", "read_quotas", "sample"]

_LISTED_MOST = 20_000
_LIST_S = 1.0
"""For which names are read: a network file system lists some thousands a second."""
_SIZED = 256
"""Files whose size is asked for; each is a question to the server."""


def look_at(path: str, *, is_home: bool = False) -> Folder:
    """Return what a folder is on.

    Raises:
        OSError: there is none, or it cannot be asked.
    """
    real = os.path.realpath(path, strict=True)
    told = os.statvfs(real)
    mounted_on, file_system = _mount_of(real)
    conda_init = is_home and "conda initialize" in read_text(Path(real, ".bashrc"))
    return Folder(
        path=path,
        file_system=file_system,
        mounted_on=mounted_on,
        total_bytes=told.f_blocks * told.f_frsize,
        free_bytes=told.f_bavail * told.f_frsize,
        total_files=told.f_files,
        free_files=told.f_favail,
        is_writable=os.access(real, os.W_OK | os.X_OK),
        holds_conda_init=conda_init,
    )


def sample(path: str) -> DataSample:
    """Return how many files a folder has, and how large some of them are.

    Folders are listed from the top down until there are 20,000 files or a second has passed; 256
    files at most are asked for their size, drawn at random.

    Raises:
        OSError: there is no such folder, or it cannot be listed.
    """
    until_s = time.monotonic() + _LIST_S
    files: list[str] = []
    waiting, is_whole = deque([path]), True
    while waiting:
        if len(files) >= _LISTED_MOST or time.monotonic() > until_s:
            is_whole = False
            break
        top = waiting.popleft()
        try:
            entries = os.scandir(top)
        except OSError:
            if top == path:
                raise
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file():
                    files.append(entry.path)
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
        folder=look_at(path), listed=len(files), is_whole=is_whole, sizes_bytes=tuple(sizes)
    )


def read_quotas(text: str) -> tuple[DiskQuota, ...]:
    """Read what `quota -wp` or `lfs quota -q` print, whose columns are alike.

    They are, by quota(1) and lfs-quota(1): file system, blocks of 1 KiB used, soft limit, hard
    limit, grace; files used, soft limit, hard limit, grace. A star marks what is beyond its limit.
    The lower limit counts: it is where writing ends, once the grace is over.
    """
    found = []
    before: list[str] = []
    for line in text.splitlines():
        words = [*before, *line.replace("*", "").split()]
        # A long name has a line of its own.
        before = words if len(words) == 1 else []
        if len(words) != 9 or not all(words[i].isdecimal() for i in (1, 2, 3, 5, 6, 7)):
            continue
        blocks, soft, hard = (int(words[i]) for i in (1, 2, 3))
        files, soft_files, hard_files = (int(words[i]) for i in (5, 6, 7))
        found.append(
            DiskQuota(
                file_system=words[0],
                used_bytes=blocks * 1024,
                limit_bytes=_lower(soft, hard) * 1024,
                used_files=files,
                limit_files=_lower(soft_files, hard_files),
            )
        )
    return tuple(found)


def _lower(soft: int, hard: int) -> int:
    return min((limit for limit in (soft, hard) if limit), default=0)


def _mount_of(real: str) -> tuple[str, str]:
    """Return where the file system of a path is mounted, and its type (proc(5), mountinfo)."""
    best = ("", "")
    for line in read_text(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        place = unescape(fields[4])
        # The last one that fits as well lies over the others.
        covers = real == place or real.startswith(place.rstrip("/") + "/")
        if covers and len(place) >= len(best[0]):
            best = (place, after.split(" ")[0])
    return best
