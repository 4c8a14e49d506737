"""A folder of this user on this machine, for files that other machines must not use."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

__all__ = ["is_private", "private_folder"]


def private_folder() -> Path:
    """Return the folder for this user in the folder for temporary files; make it if necessary.

    The caller must check `is_private`: another user can have made a folder with this name.
    """
    folder = Path(tempfile.gettempdir()) / f"teho-{os.geteuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700)
    return folder


def is_private(folder: Path) -> bool:
    """Return whether a path is a folder of this user that other users cannot enter."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & 0o077
