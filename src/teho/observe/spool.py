"""The spool: a folder on each node in which the probes of a program's processes write.

The probes do not write into the recording. It may be on a network file system, with ten thousand
processes, and its directory is not yet known when the program starts. The node's recorder copies
the files of the probes into the recording.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from teho.store.layout import safe_name

__all__ = ["Spool", "clear", "clear_profiles", "mark_of", "spool_of", "with_probe"]

_VARIABLE = "TEHO_PROBE"
_INJECT = Path(__file__).parents[1] / "probe" / "inject"
_CHUNK_BYTES = 1 << 20
_OF_PROFILER = ("profile.json", "profile-*.claim", "trace-*")
"""Files for `teho profile`: the plan, the marks of the processes that record, their traces."""
_MANY_NODES = 10
"""With fewer nodes, a file is closed after each write, so that NFS shows it to other machines."""
_MOST_OPEN = 128
_FULL_BYTES = 1 << 20
"""Size of the folder from which on probes create no new files: their `_MOST_NAMES_BYTES`."""


def spool_of(key: str) -> str:
    """Return the path of a program's spool, the same on all nodes.

    Args:
        key: identifies the program; all its processes have the same key.
    """
    name = safe_name(key)[:200]
    return f"/tmp/teho-{os.getuid()}/probe-{name}"  # noqa: S108 - private, or not used


def clear(spool: str) -> None:
    """Delete the files of a killed run whose process number is used again."""
    for path in _files_in(Path(spool)):
        _delete(path)
    clear_profiles(Path(spool))


def clear_profiles(spool: Path) -> None:
    """Delete the files for `teho profile`."""
    for pattern in _OF_PROFILER:
        for path in spool.glob(pattern):
            with contextlib.suppress(OSError):
                path.unlink()


def mark_of(spool: str) -> str:
    """Return the variable that identifies the processes of a spool's program."""
    return f"{_VARIABLE}={spool}"


def with_probe(environment: Mapping[str, str], spool: str) -> dict[str, str]:
    """Return an environment in which every Python loads the probe."""
    path = environment.get("PYTHONPATH")
    return {
        **environment,
        _VARIABLE: spool,
        "PYTHONPATH": f"{_INJECT}:{path}" if path else str(_INJECT),
    }


class Spool:
    """Copies the files of a spool into the recording.

    Args:
        folder: the spool.
        target: the folder in the run's directory.
        node: this node's name.
        node_count: number of nodes of the recording. With many nodes, the files of the recording
            stay open, because to open a file is an operation of the metadata server.
    """

    def __init__(self, folder: str, target: Path, node: str, node_count: int = 1) -> None:
        self._folder = Path(folder)
        self._target = target
        self._node = node
        self._copied: dict[str, int] = {}
        """File name -> number of bytes copied so far."""
        self._keeps_open = node_count >= _MANY_NODES
        self._open: dict[str, int] = {}
        """File name -> descriptor of the file of the recording."""

    @property
    def is_empty(self) -> bool:
        """Whether no probe has written."""
        return not self._copied

    @property
    def is_full(self) -> bool:
        """Whether the folder is so large that probes create no new files."""
        try:
            return self._folder.stat().st_size >= _FULL_BYTES
        except OSError:
            return False

    def collect(self) -> None:
        """Append the new lines to the files of the recording.

        Raises:
            OSError: the recording's directory cannot be written.
        """
        for path in _files_in(self._folder):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(self._copied.get(path.name, 0))
                while data := file.read(_CHUNK_BYTES):
                    # Only complete lines: the probe may not have finished the last one.
                    complete = data[: data.rfind(b"\n") + 1]
                    if not complete:
                        break
                    self._append(path.name, complete)
                    self._copied[path.name] = self._copied.get(path.name, 0) + len(complete)
                    file.seek(self._copied[path.name])

    def _append(self, name: str, data: bytes) -> None:
        descriptor = self._descriptor(name)
        try:
            # If the disk was full, this overwrites what was written of the lines.
            at = self._copied.get(name, 0)
            while data:
                written = os.pwrite(descriptor, data, at)
                at, data = at + written, data[written:]
        finally:
            if descriptor not in self._open.values():
                os.close(descriptor)

    def _descriptor(self, name: str) -> int:
        """Return a descriptor of a file of the recording. Most files stay open."""
        if name in self._open:
            return self._open[name]
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        path = self._target / f"{self._node}-{name}"
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            self._target.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(path, flags, 0o600)
        if self._keeps_open and len(self._open) < _MOST_OPEN:
            self._open[name] = descriptor
        return descriptor

    def close(self) -> None:
        """Delete the copied files, and the folder if it is then empty."""
        for descriptor in self._open.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._open.clear()
        for path in _files_in(self._folder):
            with contextlib.suppress(OSError):
                # A process that still runs would create a new file, without the first lines.
                is_over = not Path("/proc", _writer(path)).exists()
                if is_over and path.stat().st_size == self._copied.get(path.name):
                    _delete(path)
        with contextlib.suppress(OSError):
            (self._folder / "reader").unlink(missing_ok=True)
            self._folder.rmdir()
            self._folder.parent.rmdir()


def _delete(path: Path) -> None:
    """Delete the file of a probe, and the sampler's file next to it."""
    with contextlib.suppress(OSError):
        path.unlink()
        path.with_suffix(".seen").unlink(missing_ok=True)


def _writer(path: Path) -> str:
    """Return the pid of the process that writes a file: PID-STAMP, or stacks-PID."""
    first, _, second = path.stem.partition("-")
    return first if first.isdigit() else second


def _files_in(folder: Path) -> list[Path]:
    try:
        owner = folder.lstat().st_uid
    except OSError:
        return []
    return sorted(folder.glob("*.jsonl")) if owner == os.getuid() else []
