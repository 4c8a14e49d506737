"""One process in /proc: its state, CPU time, I/O and threads."""

# ruff: noqa: PTH208 -- thousands of names; making a Path of each takes longer than all else

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from teho.devices.procfile import slurp

__all__ = [
    "UNREADABLE",
    "ProcStat",
    "Threads",
    "parse_stat",
    "population",
    "read_io",
    "read_stat",
    "read_threads",
    "slurp",
]

# The process has ended, or it changed its user and /proc hides other users' processes.
UNREADABLE = frozenset({errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM})


class ProcStat(NamedTuple):
    """The used fields of /proc/PID/stat (see proc(5))."""

    state: bytes
    parent: str
    own_ticks: int
    """CPU time of all its threads, including ended ones, in clock ticks."""
    children_ticks: int
    """CPU time of the children that it waited for, and of their children."""
    threads: int
    start: bytes
    """Ticks after boot. Together with the pid, it identifies a process."""

    @property
    def is_dead(self) -> bool:
        """Whether it is a zombie. If only the main thread has ended, it is not."""
        return self.state in b"ZX" and self.threads <= 1


def parse_stat(data: bytes) -> ProcStat:
    """Read /proc/PID/stat.

    The name in parentheses may contain any characters, also parentheses and newlines. Only numbers
    follow the last parenthesis.

    Raises:
        ValueError: the file has another format.
    """
    # fields[0] is the third field of the manual page, the state.
    fields = data[data.rfind(b")") + 1 :].split(None, 20)
    if len(fields) < 20:
        raise ValueError(f"not a process's stat: {data[:80]!r}")
    return ProcStat(
        fields[0],
        fields[1].decode("ascii"),
        int(fields[11]) + int(fields[12]),
        int(fields[13]) + int(fields[14]),
        int(fields[17]),
        fields[19],
    )


def population(proc: str) -> bytes:
    """Return a value that changes when a process or thread of the node starts or ends.

    It is their number and the latest pid, from /proc/loadavg (proc(5)); empty if not known.
    """
    try:
        return slurp(proc + "/loadavg").rpartition(b"/")[2]
    except OSError:
        return b""


def read_stat(directory: str) -> ProcStat | None:
    """Return a process's state, or None if it is gone."""
    try:
        return parse_stat(slurp(directory + "/stat"))
    except OSError as error:
        if error.errno in UNREADABLE:
            return None
        raise


def read_io(directory: str) -> tuple[int, ...]:
    """Return rchar, wchar, read_bytes and write_bytes of a process or thread."""
    words = slurp(directory + "/io").split()
    return int(words[1]), int(words[3]), int(words[9]), int(words[11])


class Threads(NamedTuple):
    """The threads of a process."""

    runnable: int
    """Number of threads that run or wait for a core."""
    ticks: dict[str, int]
    """Thread -> its CPU time in clock ticks; empty for a process with one thread."""


def read_threads(directory: str, stat: ProcStat) -> Threads:
    """Return the threads of a process."""
    if stat.threads == 1:
        return Threads(int(stat.state == b"R"), {})
    runnable, ticks = 0, {}
    try:
        for thread in os.listdir(directory + "/task"):
            one = parse_stat(slurp(f"{directory}/task/{thread}/stat"))
            runnable += one.state == b"R"
            ticks[thread] = one.own_ticks
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
    return Threads(runnable, ticks)
