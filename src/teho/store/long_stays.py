"""Notices in a recording that the main threads of a node stay in their lines, without a report.

The stack sampler writes at once if a thread stays in one line of the program. These lines are at
the end of its file, so they cost almost nothing to read. A report of a large run costs much more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from teho.model.program import Program
from teho.store.layout import probe_folder
from teho.store.stacks import is_stack_file

__all__ = ["LongStays", "living_mains"]

_LEAST_S = 45.0
"""A run is not called stuck if its threads have stayed for less time."""
_SOON, _AGAIN = 1.25, 2.0
"""After a positive answer, they must stay for this many times as long until the next one. The
second answer comes soon: at the first one, other nodes may not have written yet that they wait."""
_TAIL_BYTES = 1 << 16
_MOST_BYTES = 1 << 20
"""If the file has grown by more, only its end is read: a thread that stays writes little."""
_STAYS, _ENDED = b'"stays":', b'"ended_s":'
_DAMAGED = (msgspec.MsgspecError, LookupError, TypeError, AttributeError)
"""Errors of a line that is not one of the sampler's."""


def living_mains(program: Program | None) -> tuple[tuple[str, int], ...]:
    """Return node and process id of the main processes that have not ended, as far as is known."""
    mains = [main.process for main in program.mains] if program else []
    return tuple(sorted((one.node, one.pid) for one in mains if one.death is None))


class LongStays:
    """The stays of some processes on one node.

    Args:
        run: the run's directory.
        mains: see `living_mains`. Those of one node are enough: in a run that is stuck, all main
            processes wait.
    """

    def __init__(self, run: Path, mains: Collection[tuple[str, int]]) -> None:
        self.mains = mains
        node = min((name for name, _ in mains), default="")
        self._pids = {str(pid) for name, pid in mains if name == node}
        self._path = _stack_file(probe_folder(run), node) if mains else None
        self._read_bytes: int | None = None
        self._stays: dict[str, tuple[float, float]] = {}
        """Process id -> since when it has stayed in its line, and when this was written."""
        self._judged: dict[str, tuple[float, float]] = {}
        """The same at the last positive answer."""
        self._times = _SOON
        """How many times as long as then they must stay until the next one."""

    def have_grown(self) -> bool:
        """Return whether all processes have stayed in their lines for long.

        After a positive answer, the next one follows after a quarter of the time, and each further
        one if they have stayed for twice the time. If one of them has continued and stays again,
        this begins again.
        """
        self._read()
        if not self._stays or self._pids - set(self._stays):
            return False
        length_s = min(at_s - since_s for since_s, at_s in self._stays.values())
        least_s = _LEAST_S
        is_same = {pid: one[0] for pid, one in self._judged.items()} == {
            pid: one[0] for pid, one in self._stays.items()
        }
        if is_same:
            least_s = self._times * min(at_s - since_s for since_s, at_s in self._judged.values())
        if length_s < least_s:
            return False
        self._times = _AGAIN if is_same else _SOON
        self._judged = dict(self._stays)
        return True

    def _read(self) -> None:
        """Read what was written since the last call."""
        if self._path is None:
            return
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            size = file.seek(0, 2)
            begin = self._read_bytes
            if begin is None or not size - _MOST_BYTES <= begin <= size:
                begin = max(0, size - _TAIL_BYTES)
            file.seek(begin)
            data = file.read(_MOST_BYTES)
            whole = data[: data.rfind(b"\n") + 1]
            self._read_bytes = begin + len(whole)
            for line in whole.split(b"\n"):
                if _STAYS in line or _ENDED in line:
                    with contextlib.suppress(*_DAMAGED):
                        self._note(msgspec.json.decode(line))

    def _note(self, line: dict[str, Any]) -> None:
        pid = line["process"].partition("-")[0]
        if pid not in self._pids:
            return
        self._stays.pop(pid, None)
        if "ended_s" in line:
            self._pids.discard(pid)
        elif stays := line["stays"]:
            self._stays[pid] = stays["since_s"], stays["at_s"]


def _stack_file(folder: Path, node: str) -> Path | None:
    """Return the file of the stack sampler of a node; None: there is none."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{node}-stacks-*.jsonl"):
            if is_stack_file(path):
                return path
    return None
