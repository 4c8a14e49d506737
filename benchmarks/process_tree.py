"""CPU time and memory of a process, together with its child processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from recorder import memory_bytes

__all__ = ["members", "tree_bytes", "tree_cpu_s"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def members(pid: int) -> list[int]:
    """Return a process (always the first), its children, their children, and so on."""
    found = [pid]
    for one in found:
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, path.read_text().split())
    return found


def tree_cpu_s(pid: int) -> float:
    """Return the CPU time of a process, of its children, and of children that have ended."""
    ticks = 0
    for one in members(pid):
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime and cstime of proc(5)
    return ticks / _TICKS_PER_S


def tree_bytes(pid: int) -> dict[str, int]:
    """Return the sizes in bytes of a process and its children: `Pss` and `Rss`."""
    sums = {"Pss": 0, "Rss": 0}
    for one in members(pid):
        with contextlib.suppress(OSError, StopIteration):
            sizes = memory_bytes(one)
            sums = {key: sums[key] + sizes[key] for key in sums}
    return sums
