"""How evenly the threads of an OpenMP process share its work, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import NamedTuple

from teho.devices.host.procstat import UNREADABLE
from teho.devices.procfile import slurp
from teho.model.device import Reading
from teho.patterns import lazy_pattern

__all__ = ["OpenMpThreads"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LIBRARIES = lazy_pattern(rb"/lib(gomp|omp|iomp5|nvomp)[^/\n]*\.so")
"""OpenMP of GCC, LLVM, Intel and NVIDIA."""

_Ticks = Mapping[str, int]
"""Thread -> its CPU time in clock ticks."""


class _Use(NamedTuple):
    """CPU time of the threads of a process between two reads, in ticks."""

    busiest: int
    total: int
    threads: int


class OpenMpThreads:
    """The CPU time of the threads of OpenMP processes.

    Args:
        proc: mount point of the process file system.
    """

    metrics: tuple[str, ...] = ("job_busiest_thread_percent", "job_mean_thread_percent")

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._checked: dict[str, tuple[int, bool]] = {}
        """Pid -> its number of threads at the last check, and whether OpenMP was loaded."""
        self._before: dict[str, _Ticks] = {}
        self._before_s = 0.0

    def read(self, processes: Mapping[str, _Ticks]) -> dict[str, Reading]:
        """Return the use of the threads since the last call, as shares of one core in %.

        Of several OpenMP processes, the one that used most CPU time counts. Without one, and at
        its first call, the metrics are left out.

        Args:
            processes: pid -> threads, of all processes; empty for a process with one thread.
        """
        now_s = time.monotonic()
        elapsed_ticks = (now_s - self._before_s) * _TICKS_PER_S
        threaded = {pid: ticks for pid, ticks in processes.items() if ticks}
        self._checked = {pid: self._check(pid, len(ticks)) for pid, ticks in threaded.items()}
        uses = [
            _use(before, ticks)
            for pid, ticks in threaded.items()
            if self._checked[pid][1] and (before := self._before.get(pid))
        ]
        self._before = threaded
        self._before_s = now_s
        most = max(uses, key=lambda use: use.total, default=None)
        if most is None or not most.threads:
            return {}
        percent = 100 / elapsed_ticks
        return {
            "job_busiest_thread_percent": most.busiest * percent,
            "job_mean_thread_percent": most.total * percent / most.threads,
        }

    def _check(self, pid: str, threads: int) -> tuple[int, bool]:
        """Return the number of threads at the last check, and whether OpenMP was loaded.

        The list of a process's libraries can be long. It is read again only if there are more
        threads than before: a program may load OpenMP late, and then it starts threads.
        """
        most, found = self._checked.get(pid, (0, False))
        if found or threads <= most:
            return most, found
        return threads, _loads_openmp(f"{self._proc}/{pid}/maps")


def _use(before: _Ticks, now: _Ticks) -> _Use:
    """Return the use of the threads that existed at both reads."""
    used = [ticks - before[thread] for thread, ticks in now.items() if thread in before]
    return _Use(max(used, default=0), sum(used), len(used))


def _loads_openmp(maps: str) -> bool:
    try:
        return bool(_LIBRARIES.search(slurp(maps)))
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        return False
