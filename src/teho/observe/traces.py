"""The recorder's part of `teho profile`: it passes plans to the probes, and packs their traces.

The probe writes a trace into the spool, uncompressed, because the program waits until it is
written. A child process of the recorder compresses it into the recording.
"""

from __future__ import annotations

import gzip
import os
import shutil
import time
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO

from teho.observe.run_changes import RunChanges
from teho.observe.spool import clear_profiles
from teho.observe.step_marks import moved_marks
from teho.process.child import Child
from teho.store.layout import TRACE_ENDINGS, plan_folder, replace_file, trace_folder

__all__ = ["Traces"]

_LEVEL = 1
"""Of gzip. For a trace of 25 MB, level 6 took twice the time, and the file was 30 % smaller
(2026-11-26)."""
_CHUNK_BYTES = 1 << 20
_NICE = 19
_LAST_S = 6.0
"""Time for the last traces when the program has ended; the supervisor waits at most 10 s."""
_PAUSE_S = 0.02


class Traces:
    """The plans and the traces of one node.

    Args:
        spool: the folder of the probes.
        run: the run's directory.
        node: this node's name.
        changes: of the run; a new plan is one.
    """

    def __init__(self, spool: str, run: Path, node: str, changes: RunChanges) -> None:
        self._spool = Path(spool)
        self._run = run
        self._node = node
        self._changes = changes
        self._seen = 0
        self._known: set[str] = set()
        self._is_late = False
        """Whether a plan could not be passed on yet."""
        self._packing: tuple[Path, Child] | None = None
        self._failed: set[Path] = set()

    def check(self, now_s: float) -> None:
        """Pass a new plan to the probes, if it is time to check for one.

        Args:
            now_s: monotonic time.
        """
        seen, self._seen = self._seen, self._changes.count(now_s)
        if seen == self._seen and not self._is_late:
            return
        self._is_late = False
        try:
            names = os.listdir(plan_folder(self._run))  # noqa: PTH208 - only the names
        except OSError:
            return  # no plan was made yet
        new = [name for name in names if name.endswith(".json") and name not in self._known]
        for name in sorted(new):
            try:
                path = plan_folder(self._run) / name
                if path.stat().st_uid == os.getuid():
                    replace_file(self._spool / "profile.json", path.read_bytes())
                self._known.add(name)
            except OSError:
                self._is_late = True  # the folder of the probes may not exist yet

    def collect(self) -> str:
        """Pack the next trace; return what went wrong, or an empty string."""
        problem = ""
        if self._packing is not None:
            source, child = self._packing
            if not child.ended():
                return ""
            self._packing = None
            if problem := child.join():
                self._failed.add(source)
                problem = f"the trace {source} could not be copied into the recording: {problem}"
        found = [path for ending in TRACE_ENDINGS for path in self._spool.glob(f"trace-*{ending}")]
        waiting = sorted(path for path in found if path not in self._failed)
        if waiting and not problem:
            source = waiting[0]
            target = trace_folder(self._run) / f"{self._node}-{source.name}.gz"
            try:
                self._packing = source, Child(partial(_pack, source, target))
            except OSError as error:
                problem = f"the trace {source} could not be copied: {error.strerror}"
        return problem

    def close(self) -> str:
        """Pack the last traces; return what went wrong, or an empty string."""
        until_s = time.monotonic() + _LAST_S
        problem = self.collect()
        while self._packing is not None and not problem and time.monotonic() < until_s:
            time.sleep(_PAUSE_S)
            problem = self.collect()
        if self._packing is not None and not problem:
            return (
                f"the trace {self._packing[0]} was not copied into the recording, because this "
                f"took longer than {_LAST_S:g} s"
            )
        if not problem:
            clear_profiles(self._spool)
        return problem


def _pack(source: Path, target: Path) -> None:
    """Compress a trace into the recording, and delete it in the spool."""
    os.nice(_NICE)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = target.with_name(f".{target.name}")
    try:
        with source.open("rb") as trace, gzip.open(temporary, "wb", _LEVEL) as packed:
            _copy(trace, packed)
        temporary.chmod(0o600)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    source.unlink()


def _copy(trace: IO[bytes], packed: gzip.GzipFile) -> None:
    """Copy a trace, with the marks of its steps moved."""
    changes = []
    if os.fstat(trace.fileno()).st_size:
        with mmap(trace.fileno(), 0, access=ACCESS_READ) as whole:
            changes = moved_marks(whole)
    for change in changes:
        _copy_bytes(trace, packed, change.start - trace.tell())
        packed.write(change.text)
        trace.seek(change.end)
    shutil.copyfileobj(trace, packed, _CHUNK_BYTES)


def _copy_bytes(trace: IO[bytes], packed: gzip.GzipFile, count: int) -> None:
    while count > 0 and (data := trace.read(min(count, _CHUNK_BYTES))):
        packed.write(data)
        count -= len(data)
