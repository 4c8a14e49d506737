"""Where a recording's files lie, and how they come to be readable by their owner alone.

    RUN/run.json               written by the supervisor of `teho run`
    RUN/nodes/NODE.json        written by that node's recorder
    RUN/live/NODE.0000.arrows  rows of the run while it goes on; NODE.0000.parquet once rotated
    RUN/samples/NODE.parquet   all rows of that node, once sealed
    RUN/tasks/RANK.json        written at its end by the supervisor of each task of a step
    RUN/stdout                 what the program printed at first, with `--keep-output`; of a step,
                               rank 0 did

Each file has exactly one writer, so nothing is ever locked.
"""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from pathlib import Path

__all__ = [
    "create_run_directory",
    "live_parts",
    "new_run_id",
    "node_file",
    "open_private",
    "output_file",
    "overview_file",
    "replace_file",
    "run_file",
    "runs_directory",
    "safe_name",
    "sealed_file",
    "task_file",
]

_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without the look-alikes i, l, o, 0, 1


def runs_directory(home: Path) -> Path:
    """Return the directory that holds all runs."""
    return home / "runs"


def new_run_id(started_at: datetime, label: str) -> str:
    """Make an id that sorts by time, tells what ran, and does not repeat."""
    slug = safe_name(label)[:24].strip("-.") or "run"
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in os.urandom(4))
    return f"{started_at:%Y%m%d-%H%M%S}-{slug}-{suffix}"


def safe_name(text: str) -> str:
    """Return a text as a file name may hold it; may be empty."""
    return _SAFE.sub("-", text).strip("-.")


def create_run_directory(home: Path, run_id: str, description: bytes) -> Path:
    """Create the directory of a new run, closed to others, and return it.

    It appears under its name only when its `run.json` stands, so that a kill at any
    moment leaves a whole run or none.

    Args:
        home: the directory of all recordings.
        run_id: the new run's id.
        description: the content of its `run.json`.

    Raises:
        OSError: it cannot be created.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    runs_directory(home).mkdir(mode=0o700, exist_ok=True)
    unborn = runs_directory(home) / f".{run_id}"
    unborn.mkdir(mode=0o700)
    for name in ("nodes", "live", "samples"):
        (unborn / name).mkdir(mode=0o700)
    replace_file(run_file(unborn), description)
    return unborn.rename(runs_directory(home) / run_id)


def run_file(run: Path) -> Path:
    """Return the path of `run.json`."""
    return run / "run.json"


def output_file(run: Path) -> Path:
    """Return the path of what a program printed at first."""
    return run / "stdout"


def node_file(run: Path, node: str) -> Path:
    """Return the path of a node's own description."""
    return run / "nodes" / f"{node}.json"


def sealed_file(run: Path, node: str) -> Path:
    """Return the path of a node's sealed rows."""
    return run / "samples" / f"{node}.parquet"


def overview_file(run: Path, node: str) -> Path:
    """Return the path of the overview of a node's sealed rows, where those are many."""
    return run / "nodes" / f"{node}.overview.arrow"


def task_file(run: Path, rank: int) -> Path:
    """Return the path of a task's own description."""
    return run / "tasks" / f"{rank:05d}.json"


def live_parts(run: Path, node: str) -> list[Path]:
    """Return a node's live parts, oldest first; a rotated part hides the stream it came from."""
    live = run / "live"
    parts: dict[str, Path] = {}
    for path in sorted(live.glob("*.arrows")) + sorted(live.glob("*.parquet")):
        name, _, number = path.stem.rpartition(".")
        if name == node and number.isdigit():
            parts[number] = path
    return [parts[number] for number in sorted(parts)]


def open_private(path: Path, *, exclusive: bool = False) -> int:
    """Open a file for writing that only its owner can read; return the descriptor.

    Raises:
        OSError: it cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if exclusive else os.O_TRUNC)
    return os.open(path, flags, 0o600)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole: a reader sees the old content or the new, never a part.

    Raises:
        OSError: it cannot be written; the old content stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        descriptor = open_private(temporary, exclusive=True)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
