"""Finds out what the processes of a node wait for while all its cores are idle.

A program without the probe has no stacks and no steps. If it uses no core for minutes, the kernel
says what its processes wait for.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection

import msgspec

from teho.devices.host.procstat import ProcStat, read_stat, slurp
from teho.model.device import Readings
from teho.model.run import IdleProcess, IdleTime
from teho.model.stack import State
from teho.patterns import lazy_pattern
from teho.unwind.memory import Memory, UnwindError, read_file
from teho.unwind.waits import Waits

__all__ = ["IdleWaits"]

_NODE = "node"
_CORES_MAX = 0.2
"""A node whose program uses less than this number of cores is idle."""
_FIRST_S = 120.0
"""The first check comes after this time of idling, and a check each `_EVERY_S` after it."""
_EVERY_S = 60.0
_WAKES = 1.0
"""A process that wakes up more often per second does something, such as a slow download."""
_MOST_PROCESSES = 256
_KEPT = 16
_LISTENS = b"0A"
"""State of a listening socket in /proc/net/tcp."""
_TERMINAL = lazy_pattern(r"/dev/(pts/|tty|console)")


class IdleWaits:
    """The processes of one node while they use no core.

    Args:
        share: a number from 0 to 1, other on each node: not all nodes check at the same moment.
        proc: mount point of the process file system.
    """

    def __init__(self, share: float = 0.0, proc: str = "/proc") -> None:
        self._proc = proc
        self._delay_s = share * _EVERY_S
        self._cpu_s = 0.0
        self._read_s = 0.0
        self._since_s: float | None = None
        self._check_s = 0.0
        self._switches: dict[int, tuple[float, int]] = {}
        """Pid -> when it was read the last time, and how often it had waited before."""
        self.found: IdleTime | None = None
        """What the processes wait for. None: the cores are not idle."""

    def check(self, readings: Readings, pids: Collection[int], elapsed_s: float) -> bool:
        """Check the processes if the cores have been idle for minutes.

        Args:
            readings: the newest of the node.
            pids: the program's processes.
            elapsed_s: when they were read.

        Returns:
            Whether `found` has changed.
        """
        cpu_s = readings.get(_NODE, {}).get("job_cpu_s")
        if not isinstance(cpu_s, (int, float)):
            return False
        used = (cpu_s - self._cpu_s) / max(elapsed_s - self._read_s, 1e-9)
        self._cpu_s, self._read_s = float(cpu_s), elapsed_s
        if used > _CORES_MAX:
            self._since_s = None
            self._switches = {}
            had, self.found = self.found, None
            return had is not None
        if self._since_s is None:
            self._since_s = elapsed_s
            self._check_s = elapsed_s + _FIRST_S + self._delay_s
        if elapsed_s < self._check_s:
            return False
        self._check_s = elapsed_s + _EVERY_S
        before, now = self.found, self._leaves(pids, elapsed_s)
        if before is not None and before.processes == now:
            return False
        self.found = IdleTime(since_s=round(self._since_s, 3), processes=now)
        return True

    def _leaves(self, pids: Collection[int], elapsed_s: float) -> tuple[IdleProcess, ...]:
        """Return the processes that have no child process: the others wait for these."""
        stats: dict[int, ProcStat] = {}
        for pid in sorted(pids)[:_MOST_PROCESSES]:
            with contextlib.suppress(OSError, ValueError):
                stat = read_stat(f"{self._proc}/{pid}")
                if stat is not None and not stat.is_dead:
                    stats[pid] = stat
        parents = {stat.parent for stat in stats.values()}
        leaves = [(pid, stat) for pid, stat in stats.items() if str(pid) not in parents]
        before, self._switches = self._switches, {}
        found = []
        for pid, stat in leaves[:_KEPT]:
            one = self._described(pid, stat)
            count = self._count_of_waits(pid)
            if count is not None:
                self._switches[pid] = elapsed_s, count
                since_s, had = before.get(pid, (elapsed_s, count))
                waits_on = elapsed_s > since_s and count - had < _WAKES * (elapsed_s - since_s)
                one = msgspec.structs.replace(one, wakes_up=not waits_on)
            found.append(one)
        return tuple(found)

    def _count_of_waits(self, pid: int) -> int | None:
        """Return how often the main thread has begun to wait; None if this is not known."""
        for line in read_file(f"{self._proc}/{pid}/status").splitlines():
            if line.startswith(b"voluntary_ctxt_switches:"):
                return int(line.split()[1])
        return None

    def _described(self, pid: int, stat: ProcStat) -> IdleProcess:
        name = ""
        with contextlib.suppress(OSError):
            name = slurp(f"{self._proc}/{pid}/comm").decode("utf-8", "replace").strip()
        targets = self._targets(pid)
        return IdleProcess(
            pid=pid,
            name=name,
            state=self._state(pid),
            uninterruptible=stat.state == b"D",
            listens=self._listens(pid, targets),
            terminal=bool(_TERMINAL.match(targets.get("0", ""))),
        )

    def _state(self, pid: int) -> str:
        """Return what the main thread waits for; empty if the kernel does not say it."""
        try:
            memory = Memory(pid)
        except UnwindError:
            return ""
        try:
            waits = Waits(pid, memory)
            try:
                call = waits.call()
                return (waits.state(call) if call else State.RUNNING).value
            finally:
                waits.close()
        except (UnwindError, ValueError, IndexError):
            return ""
        finally:
            memory.close()

    def _targets(self, pid: int) -> dict[str, str]:
        """Return what each descriptor of a process refers to."""
        folder, found = f"{self._proc}/{pid}/fd", {}
        with contextlib.suppress(OSError):
            for number in os.listdir(folder):  # noqa: PTH208 - names are wanted
                with contextlib.suppress(OSError):
                    found[number] = os.readlink(f"{folder}/{number}")  # noqa: PTH115 - texts
        return found

    def _listens(self, pid: int, targets: dict[str, str]) -> bool:
        """Return whether a process listens for connections over TCP."""
        inodes = {one[8:-1].encode() for one in targets.values() if one.startswith("socket:[")}
        if not inodes:
            return False
        for table in ("tcp", "tcp6"):
            for line in read_file(f"{self._proc}/{pid}/net/{table}").splitlines()[1:]:
                words = line.split()
                if len(words) > 9 and words[3] == _LISTENS and words[9] in inodes:
                    return True
        return False
