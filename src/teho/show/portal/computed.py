"""Asks a separate process for the pages about recordings, and keeps the newest answers."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from teho.errors import RecordingError
from teho.model.listed_run import Judged
from teho.process.isolated_call import IsolatedCall, NoAnswer, executing
from teho.show.html.page import PageParts
from teho.show.portal.spare import Spare
from teho.store.index import content_stamp

__all__ = ["Computed"]

_DEADLINE_S = 75.0
_AT_ONCE = 2
"""Processes at the same time: a login node belongs to many users."""
_WAITING = 8
_KEPT_BYTES = 32 << 20
_LARGEST_KEPT_BYTES = 8 << 20


class Computed:
    """The reports of recordings. An answer is kept until its recording changes.

    Args:
        teho: the command of this Teho, for the other processes.
    """

    def __init__(self, teho: Sequence[str]) -> None:
        self._teho = teho
        self._kept: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(_AT_ONCE)
        self._places = threading.BoundedSemaphore(_AT_ONCE + _WAITING)
        self._spare: Spare | None = None
        self._is_closed = False

    def prepare(self) -> None:
        """Start a process in the background that loads Teho's modules, for the next page."""
        spare = self._spare
        if spare is None or not spare.is_fresh:
            threading.Thread(target=self._prepare, name="prepare", daemon=True).start()

    def _prepare(self) -> None:
        with self._lock:
            if self._is_closed or (self._spare and self._spare.is_fresh):
                return
            old = self._spare
            with contextlib.suppress(OSError):
                self._spare = Spare(self._teho, _DEADLINE_S)
        if old:
            old.end()

    def close(self) -> None:
        """End the process that waits."""
        with self._lock:
            self._is_closed = True
            spare, self._spare = self._spare, None
        if spare:
            spare.end()

    def report(self, directory: Path) -> PageParts:
        """Return the page of a run.

        Raises:
            RecordingError: the report cannot be computed.
        """
        return msgspec.json.decode(self._ask("report", [directory]), type=PageParts)

    def diff(self, directories: Sequence[Path]) -> PageParts:
        """Return the page about several runs.

        Raises:
            RecordingError: the page cannot be computed.
        """
        return msgspec.json.decode(self._ask("diff", directories), type=PageParts)

    def json(self, directory: Path) -> bytes:
        """Return the report of a run as JSON.

        Raises:
            RecordingError: the report cannot be computed.
        """
        return self._ask("json", [directory])

    def judge(self, directories: Sequence[Path]) -> list[Judged]:
        """Return the verdicts of runs, in their order.

        Raises:
            RecordingError: they cannot be computed.
        """
        return msgspec.json.decode(self._answer_to("judge", directories), type=list[Judged])

    def _ask(self, kind: str, directories: Sequence[Path]) -> bytes:
        key = (kind, *((str(one), content_stamp(one), _rows_ns(one)) for one in directories))
        with self._lock:
            if known := self._kept.get(key):
                self._kept.move_to_end(key)
                return known
        answer = self._answer_to(kind, directories)
        self._keep(key, answer)
        return answer

    def _keep(self, key: tuple[object, ...], answer: bytes) -> None:
        if len(answer) > _LARGEST_KEPT_BYTES:
            return
        with self._lock:
            if key not in self._kept:
                self._kept[key] = answer
                self._kept_bytes += len(answer)
            while self._kept_bytes > _KEPT_BYTES:
                _, oldest = self._kept.popitem(last=False)
                self._kept_bytes -= len(oldest)

    def _answer_to(self, kind: str, directories: Sequence[Path]) -> bytes:
        if not self._places.acquire(blocking=False):
            raise RecordingError("too many reports are being computed", "", "try again in a minute")
        try:
            with self._turn:
                call = None if kind == "judge" else self._question(kind, directories)
                if call is None:
                    command = [*self._teho, "portal-page", kind, *map(str, directories)]
                    call = IsolatedCall("the report", executing(command, os.environ), _DEADLINE_S)
                answer = call.output()
        finally:
            self._places.release()
        if isinstance(answer, NoAnswer):
            raise RecordingError(answer.why)
        if not answer:
            raise RecordingError("the report could not be computed")
        return answer

    def _question(self, kind: str, directories: Sequence[Path]) -> IsolatedCall | None:
        """Ask the process that waits; None if there is none."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is None:
            return None
        if not spare.is_fresh:
            spare.end()
            return None
        return spare.ask(kind, directories)


def _rows_ns(directory: Path) -> int:
    """Return when the newest rows of a run that continues were written, in ns; 0: it has ended.

    New rows change neither the description of a recording nor a folder.
    """
    newest = 0
    for path in directory.glob("live/[!.]*"):
        with contextlib.suppress(OSError):
            newest = max(newest, path.stat().st_mtime_ns)
    return newest
