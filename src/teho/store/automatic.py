"""Recordings that `teho always` made: they get their end from the accounting, and a limit of space.

Recordings that the user started, named or tagged are never removed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.errors import RecordingError
from teho.model.run import End, Run, RunState, Trouble
from teho.store.index import list_runs, remove_run
from teho.store.layout import replace_file, run_file
from teho.store.read import run_state

__all__ = [
    "AutomaticRun",
    "add_end",
    "add_troubles",
    "automatic_runs",
    "is_due",
    "nearest_directory",
    "remove_stamp",
    "tidy",
]

_TIDY_S = 86_400.0
_STAMP = ".always"
"""Its time of modification is the time at which `is_due` last returned True."""


class AutomaticRun(NamedTuple):
    """A recording that `teho always` made."""

    directory: Path
    run: Run

    @property
    def used_bytes(self) -> int:
        """Size of its files."""
        sizes = []
        for path in self.directory.rglob("*"):
            with contextlib.suppress(OSError):
                sizes.append(path.lstat().st_size)
        return sum(sizes)

    @property
    def state(self) -> RunState:
        """Whether the job still runs."""
        return run_state(self.run, self.directory)


def nearest_directory(path: Path) -> Path:
    """Return the directory, or the nearest one above that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def automatic_runs(home: Path) -> list[AutomaticRun]:
    """Return the recordings that may be removed, oldest first: without a name and without tags.

    Raises:
        RecordingError: the directory of the recordings cannot be read.
    """
    return [
        AutomaticRun(directory, run)
        for directory, run in list_runs(home)
        if run and run.is_automatic and not run.name and not run.tags
    ]


def is_due(home: Path) -> bool:
    """Return whether the last call that returned True was a day ago."""
    stamp = home / _STAMP
    with contextlib.suppress(OSError):
        if time.time() - stamp.stat().st_mtime < _TIDY_S:
            return False
    with contextlib.suppress(OSError):
        stamp.touch(0o600)
        return True
    return False


def remove_stamp(home: Path) -> None:
    """Delete the file that `is_due` writes."""
    with contextlib.suppress(OSError):
        (home / _STAMP).unlink()


def tidy(home: Path, keep_s: float, keep_bytes: float) -> int:
    """Remove old recordings, then the oldest until the others fit; return how many were removed.

    Recordings of jobs that still run are kept.

    Args:
        home: the directory of all recordings.
        keep_s: age from which on they are removed.
        keep_bytes: space for all of them.
    """
    removed = 0
    with contextlib.suppress(OSError, RecordingError):
        ended = [one for one in automatic_runs(home) if one.state is not RunState.RUNNING]
        sizes = [one.used_bytes for one in ended]
        left_bytes = sum(sizes)
        oldest = datetime.now(timezone.utc) - timedelta(seconds=keep_s)
        for one, size_bytes in zip(ended, sizes, strict=True):
            if one.run.started_at >= oldest and left_bytes <= keep_bytes:
                break
            with contextlib.suppress(RecordingError):  # it has files of the user
                remove_run(one.directory)
                removed += 1
            left_bytes -= size_bytes
    return removed


def add_end(directory: Path, end: End) -> None:
    """Write the end of a job into its recording.

    Raises:
        OSError: it cannot be written.
    """
    _change(directory, "end", end)


def add_troubles(directory: Path, troubles: Sequence[Trouble]) -> None:
    """Write the problems of the recorders into a recording.

    Raises:
        OSError: they cannot be written.
    """
    if troubles:
        _change(directory, "troubles", troubles)


def _change(directory: Path, key: str, value: End | Iterable[Trouble]) -> None:
    # Only `run.json`: the parts of nodes stay in their own files.
    path = run_file(directory)
    content: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    replace_file(path, msgspec.json.encode(content | {key: value}))
