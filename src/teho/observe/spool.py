"""The folder on each node in which the probes of the program's processes say what they saw.

Not the recording's own: ten thousand processes would write to a network file system, and
where that is is not known yet when the program starts. The node's recorder brings it there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from teho.store.layout import safe_name

__all__ = ["Spool", "clear", "mark_of", "spool_of", "with_probe"]

_VARIABLE = "TEHO_PROBE"
_INJECT = Path(__file__).parents[1] / "probe" / "inject"
_CHUNK_BYTES = 1 << 20
_FULL_BYTES = 1 << 20
"""Of the folder itself, from which on a probe makes no new file: its `_MOST_NAMES_BYTES`."""


def spool_of(key: str) -> str:
    """Return the path of the folder for a program, the same on all nodes.

    Args:
        key: what its processes have in common, and those of no other program.
    """
    name = safe_name(key)[:200]
    return f"/tmp/teho-{os.getuid()}/probe-{name}"  # noqa: S108 - closed to others, or not used


def clear(spool: str) -> None:
    """Take away what a run left that was killed, where another one now has its process's number."""
    for path in _files_in(Path(spool)):
        with contextlib.suppress(OSError):
            path.unlink()
            path.with_suffix(".seen").unlink(missing_ok=True)


def mark_of(spool: str) -> str:
    """Return the entry by which the processes of a spool's program are known."""
    return f"{_VARIABLE}={spool}"


def with_probe(environment: Mapping[str, str], spool: str) -> dict[str, str]:
    """Return an environment in which every Python lets the probe in."""
    path = environment.get("PYTHONPATH")
    return {
        **environment,
        _VARIABLE: spool,
        "PYTHONPATH": f"{_INJECT}:{path}" if path else str(_INJECT),
    }


class Spool:
    """What the recorder of a node brings home of it.

    Args:
        folder: the spool.
        target: where it goes, in the run's directory.
        node: this node's name.
    """

    def __init__(self, folder: str, target: Path, node: str) -> None:
        self._folder = Path(folder)
        self._target = target
        self._node = node
        self._taken: dict[str, int] = {}
        """How many bytes of each file are home."""

    @property
    def is_empty(self) -> bool:
        """Whether no probe has said anything."""
        return not self._taken

    @property
    def is_full(self) -> bool:
        """Whether so many processes have written that probes make no new files."""
        try:
            return self._folder.stat().st_size >= _FULL_BYTES
        except OSError:
            return False

    def collect(self) -> None:
        """Append what was written since the last time to the files of the recording.

        Raises:
            OSError: the recording's directory cannot be written.
        """
        for path in _files_in(self._folder):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(self._taken.get(path.name, 0))
                while data := file.read(_CHUNK_BYTES):
                    # Whole lines: the probe may be in the midst of one.
                    whole = data[: data.rfind(b"\n") + 1]
                    if not whole:
                        break
                    self._append(path.name, whole)
                    self._taken[path.name] = self._taken.get(path.name, 0) + len(whole)
                    file.seek(self._taken[path.name])

    def _append(self, name: str, data: bytes) -> None:
        self._target.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._target / f"{self._node}-{name}", flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            # Where a disk was full the last time, what came of it is written over.
            file.seek(self._taken.get(name, 0))
            file.write(data)

    def close(self) -> None:
        """Take away what is home, and the folder if that was all."""
        for path in _files_in(self._folder):
            with contextlib.suppress(OSError):
                # Who lives may write on, into what would be another file without a beginning.
                is_over = not Path("/proc", _writer(path)).exists()
                if is_over and path.stat().st_size == self._taken.get(path.name):
                    path.unlink()
                    path.with_suffix(".seen").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (self._folder / "reader").unlink(missing_ok=True)
            self._folder.rmdir()
            self._folder.parent.rmdir()


def _writer(path: Path) -> str:
    """Return the number of the process that writes a file: PID-STAMP, or stacks-PID."""
    first, _, second = path.stem.partition("-")
    return first if first.isdigit() else second


def _files_in(folder: Path) -> list[Path]:
    try:
        owner = folder.lstat().st_uid
    except OSError:
        return []
    return sorted(folder.glob("*.jsonl")) if owner == os.getuid() else []
