"""Lets only one `teho export` at a time send to a store.

Two exports of one run would both send a part that the store does not have yet. VictoriaMetrics
would then have its values twice.
"""

from __future__ import annotations

import errno
import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from teho.errors import StoreBusyError
from teho.units import format_duration

__all__ = ["locked"]

_LOCK = ".lock"
_PAUSE_S = 0.5
_LOCKED = frozenset({errno.EWOULDBLOCK, errno.EACCES})


@contextmanager
def locked(folder: Path, host: str, wait_s: float, report: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder. The kernel releases it with the end of the process.

    Some network file systems have no locks: there, two exports are not prevented.

    Args:
        folder: with the progress of the exports to the store; it is made.
        host: name of the store in messages.
        wait_s: how long to wait for the other export.
        report: gets a sentence before the wait.

    Raises:
        StoreBusyError: the other export has not ended in time.
        OSError: the folder or the file of the lock cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _LOCK).open("a") as file:
        end_s, is_reported = time.monotonic() + wait_s, False
        while not _locked(file):
            other = f"another `teho export` is sending to {host}"
            rest_s = end_s - time.monotonic()
            if rest_s <= 0:
                raise StoreBusyError(
                    other,
                    "one export at a time",
                    "repeat the command later: it sends only the values that the store lacks",
                )
            if not is_reported:
                report(f"{other}. Teho waits until it ends, at most {format_duration(wait_s)}")
                is_reported = True
            time.sleep(min(_PAUSE_S, rest_s))
        yield


def _locked(file: IO[str]) -> bool:
    """Return whether this process has the lock now, or the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _LOCKED
    return True
