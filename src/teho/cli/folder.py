"""Makes a folder that an option names, or that a command needs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from teho.errors import InputError

__all__ = ["make_folder"]


def make_folder(path: Path, next_step: str, *, mode: int = 0o777) -> None:
    """Make a folder and the folders above it; it may exist.

    Args:
        path: the folder.
        next_step: what the user can do if it cannot be made.
        mode: permissions of a new folder.

    Raises:
        InputError: a file is in its place, or it cannot be made.
    """
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in {errno.EEXIST, errno.ENOTDIR}:
            file = next((one for one in (path, *path.parents) if os.path.lexists(one)), path)
            raise InputError(f"{file} is not a folder", "a folder", next_step) from error
        raise InputError(
            f"{path}: {error.strerror}", "a folder that you can write", next_step
        ) from error
