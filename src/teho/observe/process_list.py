"""The program's processes on this node at one moment, for viewers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection

from teho.config.privacy import masked_command, readable
from teho.devices.host.procstat import read_stat, slurp
from teho.model.live import ProcessNow

__all__ = ["ProcessList"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOST_PER_S = 256
"""Most processes that are read in a second: a recorder must not become slow if it is watched."""
_MOST = 64
"""Processes that are sent; those with the most CPU time come first."""
_LONGEST_COMMAND = 160


class ProcessList:
    """Reads what each process uses. The first reading has no shares of CPU time.

    Args:
        proc: mount point of the process file system.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._ticks: dict[tuple[int, bytes], int] = {}
        self._read_s = float("-inf")
        self._newest: list[ProcessNow] = []

    def read(self, pids: Collection[int], now_s: float) -> list[ProcessNow]:
        """Return the processes that exist, those with the most CPU time first.

        If there are very many processes, most calls return the list of an earlier call.

        Args:
            pids: the program's processes.
            now_s: monotonic time.
        """
        span_s = now_s - self._read_s
        if span_s < len(pids) / _MOST_PER_S:
            return self._newest
        self._read_s = now_s
        before, self._ticks = self._ticks, {}
        found: list[ProcessNow] = []
        for pid in pids:
            directory = f"{self._proc}/{pid}"
            try:
                stat = read_stat(directory)
                if stat is None or stat.is_dead:
                    continue
                pages = slurp(directory + "/statm").split(None, 2)
                key = pid, stat.start
                # Read again each time: a shell may have become another program.
                command = _command(slurp(directory + "/cmdline"))
            except (OSError, ValueError):
                continue  # it has ended, or it cannot be read
            self._ticks[key] = stat.own_ticks
            ticks = stat.own_ticks - before[key] if key in before else None
            found.append(
                ProcessNow(
                    pid=pid,
                    parent=int(stat.parent),
                    command=command,
                    cpu_percent=None if ticks is None else 100 * ticks / _TICKS_PER_S / span_s,
                    resident_bytes=int(pages[1]) * _PAGE_BYTES,
                    threads=stat.threads,
                )
            )
        found.sort(key=lambda one: (-(one.cpu_percent or 0.0), one.pid))
        self._newest = found[:_MOST]
        return self._newest


def _command(content: bytes) -> str:
    """Return the command line of a process without secrets; a kernel's process has none."""
    words = [readable(os.fsdecode(word)) for word in content.rstrip(b"\0").split(b"\0")]
    text = shlex.join(masked_command(words)) if words != [""] else ""
    return text if len(text) <= _LONGEST_COMMAND else f"{text[: _LONGEST_COMMAND - 1]}…"
