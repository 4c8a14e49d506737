"""The files of a recording that can be downloaded."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from teho.model.run import Run
from teho.store.layout import run_file, sealed_file
from teho.store.traces import newest_traces

__all__ = ["downloads", "open_file", "traces"]


def downloads(directory: Path, run: Run) -> dict[str, Path]:
    """Return the files that can be downloaded: name -> path.

    The names come from the recording, never from an address.
    """
    found = {"run.json": run_file(directory)}
    for node in run.nodes:
        found[f"{node.name}.parquet"] = sealed_file(directory, node.name)
    return {name: path for name, path in found.items() if _is_plain(path)} | traces(directory)


def traces(directory: Path) -> dict[str, Path]:
    """Return the newest traces of a run: name -> path; empty if the run has none."""
    try:
        found = newest_traces(directory)
    except OSError:  # a trace was deleted in this moment
        return {}
    return {path.name: path for path in found if _is_plain(path)}


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading that is not a link, a pipe or a device.

    Raises:
        OSError: it cannot be opened, or it is not a plain file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is not a plain file")
    return file


def _is_plain(path: Path) -> bool:
    try:
        # The folder must not be a link either.
        folder = stat.S_ISDIR(path.parent.lstat().st_mode)
        return folder and stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
