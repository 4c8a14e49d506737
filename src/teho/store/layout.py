"""The paths of a recording's files, and functions that create files only their owner can read.

    RUN/run.json               written by the supervisor of `teho run`
    RUN/nodes/NODE.json        written by that node's recorder
    RUN/live/NODE.0000.arrows  rows during the run; NODE.0000.parquet once rotated
    RUN/samples/NODE.parquet   all rows of that node, once sealed
    RUN/probe/NODE-PID-STAMP.jsonl  what the probe recorded of a Python process
    RUN/leases/VIEWER.json     written by each viewer that watches the run
    RUN/now/NODE.json          the node's newest sample, while a viewer cannot be connected
    RUN/tasks/RANK.json        written by the supervisor of each task of a step, at its end
    RUN/plans/PLAN.json        a plan of `teho profile RUN`, written by that command
    RUN/traces/NODE-trace-rankN-PID-PLAN.json.gz  a trace of PyTorch's profiler; `.xplane.pb.gz`: of
                               JAX's or TensorFlow's
    RUN/stdout                 the first part of the program's output, with `--keep-output`; for a
                               step, the output of rank 0

Each file has exactly one writer, so locks are not needed.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from datetime import datetime
from pathlib import Path

from teho.patterns import lazy_pattern

__all__ = [
    "NODES",
    "SHARED_PARTS",
    "TASKS",
    "TRACE_ENDINGS",
    "create_run_directory",
    "is_ours",
    "is_run_id",
    "lease_folder",
    "live_file",
    "live_parts",
    "new_run_id",
    "node_file",
    "now_file",
    "open_private",
    "output_file",
    "overview_file",
    "plan_folder",
    "probe_folder",
    "replace_file",
    "run_file",
    "runs_directory",
    "safe_name",
    "sealed_file",
    "task_file",
    "trace_folder",
]

NODES, TASKS = "nodes", "tasks"
"""Folders of a run with one description for each node, and for each task."""
_LIVE, _SAMPLES, _PROBE, _RUN, _OUTPUT = "live", "samples", "probe", "run.json", "stdout"
_LEASES, _NOW, _PLANS, _TRACES = "leases", "now", "plans", "traces"
TRACE_ENDINGS = (".json", ".xplane.pb")
"""Of traces by PyTorch, and by JAX and TensorFlow; `.gz` follows in a recording."""
SHARED_PARTS = (_RUN, NODES, TASKS, _SAMPLES, _LIVE, _PROBE)
"""Files and folders of a recording that other people may get: not the output, which can have
secrets, and not the leases, which have tokens."""
_SAFE = lazy_pattern(r"[^A-Za-z0-9._-]+")
_RUN_ID = lazy_pattern(r"\d{8}-\d{6}-[A-Za-z0-9._-]+", re.ASCII)
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without i, l, o, 0, 1, which look alike


def runs_directory(home: Path) -> Path:
    """Return the directory of all runs."""
    return home / "runs"


def new_run_id(started_at: datetime, label: str) -> str:
    """Return a unique id that begins with the time and contains the label."""
    slug = safe_name(label)[:24].strip("-.") or "run"
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in os.urandom(4))
    return f"{started_at:%Y%m%d-%H%M%S}-{slug}-{suffix}"


def is_run_id(name: str) -> bool:
    """Return whether a name has the form of a run's id, which never contains a slash."""
    return _RUN_ID.fullmatch(name) is not None


def safe_name(text: str) -> str:
    """Return a text with only the characters that file names may have; may be empty."""
    return _SAFE.sub("-", text).strip("-.")


def create_run_directory(home: Path, run_id: str, description: bytes) -> Path:
    """Create the directory of a new run, private to the user, and return it.

    The directory gets its final name when `run.json` is complete. If the process is killed
    before, readers do not see the run.

    Args:
        home: the directory of all recordings.
        run_id: the new run's id.
        description: the content of its `run.json`.

    Raises:
        OSError: it cannot be created.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    runs_directory(home).mkdir(mode=0o700, exist_ok=True)
    temporary = runs_directory(home) / f".{run_id}"
    for folder in (temporary, *(temporary / name for name in (NODES, _LIVE, _SAMPLES, _LEASES))):
        folder.mkdir(mode=0o700)
    replace_file(run_file(temporary), description)
    return temporary.rename(runs_directory(home) / run_id)


def run_file(run: Path) -> Path:
    """Return the path of `run.json`."""
    return run / _RUN


def output_file(run: Path) -> Path:
    """Return the path of the program's output."""
    return run / _OUTPUT


def node_file(run: Path, node: str) -> Path:
    """Return the path of a node's own description."""
    return run / NODES / f"{node}.json"


def sealed_file(run: Path, node: str) -> Path:
    """Return the path of a node's sealed rows."""
    return run / _SAMPLES / f"{node}.parquet"


def overview_file(run: Path, node: str) -> Path:
    """Return the path of the overview of a node's sealed rows; only long runs have it."""
    return run / NODES / f"{node}.overview.arrow"


def task_file(run: Path, rank: int) -> Path:
    """Return the path of a task's own description."""
    return run / TASKS / f"{rank:05d}.json"


def probe_folder(run: Path) -> Path:
    """Return the folder of the probes' files, one for each process."""
    return run / _PROBE


def plan_folder(run: Path) -> Path:
    """Return the folder with the plans of `teho profile RUN`."""
    return run / _PLANS


def trace_folder(run: Path) -> Path:
    """Return the folder with the traces of the framework's profiler."""
    return run / _TRACES


def lease_folder(run: Path) -> Path:
    """Return the folder with a file of each viewer that watches the run."""
    return run / _LEASES


def now_file(run: Path, node: str) -> Path:
    """Return the path of a node's newest sample."""
    return run / _NOW / f"{node}.json"


def live_file(run: Path, node: str, number: int) -> Path:
    """Return the path of one part of a node's live rows."""
    return run / _LIVE / f"{node}.{number:04d}.arrows"


def live_parts(run: Path, node: str) -> list[Path]:
    """Return a node's live parts, oldest first. A packed part replaces its stream."""
    live, begin = run / _LIVE, f"{node}."
    # All nodes share the folder: with paths, listing it for each of a thousand nodes takes long.
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        names = [name for name in os.listdir(live) if name.startswith(begin)]  # noqa: PTH208 - as above
    parts: dict[str, Path] = {}
    for name in sorted(names):
        number, _, kind = name.removeprefix(begin).partition(".")
        if number.isdigit() and kind in {"arrows", "parquet"}:
            parts[number] = live / name
    return [parts[number] for number in sorted(parts)]


def is_ours(name: str) -> bool:
    """Return whether Teho uses this name for a file or folder in a run's directory.

    The temporary files of `replace_file` are included: a killed process may leave one.
    """
    if name in {NODES, TASKS, _LIVE, _SAMPLES, _PROBE, _LEASES, _NOW, _PLANS, _TRACES}:
        return True
    return any(name == file or name.startswith(f".{file}.") for file in (_RUN, _OUTPUT))


def open_private(path: Path, *, exclusive: bool = False) -> int:
    """Open a file for writing that only its owner can read; return the descriptor.

    Raises:
        OSError: it cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if exclusive else os.O_TRUNC)
    return os.open(path, flags, 0o600)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically: a reader sees the complete old content or the complete new one.

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
