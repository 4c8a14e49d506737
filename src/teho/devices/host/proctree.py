"""The program's processes and what they use, from /proc.

This runs every second on nodes with thousands of processes. So /proc is listed only if a process
started or ended, and only files of the program's processes and of new ones are read.
"""

# ruff: noqa: PTH208 -- thousands of names; making a Path of each takes longer than all else

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Mapping, Sequence

from teho.devices.host import procstat
from teho.devices.host.openmp import OpenMpThreads
from teho.devices.host.procstat import UNREADABLE, ProcStat, read_io, read_stat, read_threads
from teho.devices.procfile import missing_because
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["METRICS", "ProcessTree"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_RECHECK_SCANS = 60
# A scheduler forks before it executes the program, so a young process may still change.
_YOUNG_TICKS = 10 * _TICKS_PER_S
_OPEN_FILES_SAMPLES = 10
# Reading the state of one thread takes about 7 µs. Mean number of threads per sample.
_THREADS_PER_SAMPLE = 32
_IO_METRICS = (
    "job_read_calls_bytes",
    "job_write_calls_bytes",
    "job_read_bytes",
    "job_write_bytes",
)
METRICS = (
    "job_cpu_s",
    "job_ended_cpu_s",
    "job_processes",
    "job_threads",
    "job_runnable_threads",
    *OpenMpThreads.metrics,
    "job_open_files",
    "job_memory_bytes",
    "job_resident_bytes",
    "job_shared_bytes",
    *_IO_METRICS,
)


_Use = tuple[int, ...]
"""What processes used: CPU time in ticks, and the bytes of `_IO_METRICS`."""
_NO_IO: _Use = (0,) * len(_IO_METRICS)
_NOTHING: _Use = (0, *_NO_IO)


def _plus(one: _Use, other: _Use) -> _Use:
    return tuple(map(operator.add, one, other))


class _Counter:
    """A sum over processes. An ended process is included in the parent that waited for it."""

    def __init__(self) -> None:
        self.value = 0
        self._lost = 0

    def update(self, total: int, *, complete: bool) -> None:
        """Set the new sum. The value never falls.

        Parents are read before their children, so no process is counted twice. A process that
        ended during the reading (`complete` is false) may be missing until the next sum. If a
        complete sum fell, no parent waited for a process: its parent ignores SIGCHLD, or is
        outside of the tree. Then its use stays counted.
        """
        total += self._lost
        if total >= self.value:
            self.value = total
        elif complete:
            self._lost += self.value - total


class _Reaper:
    """A supervisor: the use of the children that it waited for.

    Counting starts with this object. If a shell became the supervisor by `exec`, the shell's
    children are not counted.
    """

    def __init__(self, pid: int, proc: str) -> None:
        self.pid = str(pid)
        self.used = self._before = _NOTHING
        self.io_missing: Missing | None = None
        self.ended = False
        self._directory = f"{proc}/{pid}"
        self._start = b""
        self.read()
        self._before, self.used = self.used, _NOTHING

    def read(self) -> None:
        """Update the figures. After the end of the supervisor they do not change."""
        stat = None if self.ended else read_stat(self._directory)
        if stat is None or stat.start != (self._start or stat.start):
            self.ended = True
            return
        self._start = stat.start
        self.io_missing = None
        io = self.used[1:]
        try:
            # The figures of the process include its children, those per thread do not.
            own = read_io(f"{self._directory}/task/{self.pid}")
            whole = read_io(self._directory)
        except OSError as error:
            # The process exists, because its stat was just read.
            self.io_missing = missing_because(error, f"{self._directory}/io")
        else:
            parts = zip(whole, own, self._before[1:], strict=True)
            io = tuple(max(0, all_ - mine - before) for all_, mine, before in parts)
        self.used = (stat.children_ticks - self._before[0], *io)


class ProcessTree:
    """The descendants of the supervisors of `teho run` on this node, without recorders.

    A supervisor is a child subreaper: if the parent of a process ends, the process becomes its
    child. So the ancestors of a process decide whether it is counted. If the supervisor is killed,
    its known processes and their descendants stay counted. Each task of a job's step has a
    supervisor, see `add`. A process that a scheduler started for the program has no supervisor.
    `belongs` recognises it, and its descendants are counted too.

    Args:
        exclude: processes that are not counted, nor their descendants.
        belongs: returns whether a process without a supervisor is counted, from its directory;
            None: no such process is counted.
        proc: mount point of the process file system.
        used_before: metric -> what the processes had used when the recording began; it does not
            count.

    Attributes:
        pids: the program's processes at the last read, including zombies.
        cpu_ticks: the CPU time of each live one, in clock ticks.
        is_deserted: whether all of them were zombies.
    """

    def __init__(
        self,
        exclude: frozenset[int] = frozenset(),
        belongs: Callable[[str], bool] | None = None,
        proc: str = "/proc",
        used_before: Mapping[str, float] | None = None,
    ) -> None:
        self._used_before = used_before or {}
        self.pids: frozenset[int] = frozenset()
        self.cpu_ticks: dict[int, int] = {}
        self.is_deserted = True
        self._proc = proc
        self._belongs = belongs
        self._reapers: list[_Reaper] = []
        self._never: set[str] = set(map(str, exclude))
        # Pids are text, because the listing returns text and paths need it.
        self._known: dict[str, bytes] = {}
        """Pid -> start; parents come before their children."""
        self._members: dict[str, _Use] = {}
        """Processes that `belongs` recognised -> their latest use."""
        self._left = _NOTHING
        """Use of ended members. No process of the tree waits for them."""
        self._foreign: set[str] = set(self._never)
        self._undecided: set[str] = set()
        self._population = b""
        """State of the node at the last listing; empty if a listing is due."""
        self._scans = 0
        self._counters = tuple(_Counter() for _ in _NOTHING)
        self._ended = _Counter()
        self._openmp = OpenMpThreads(proc)
        self._runnable_wait = 0
        self._open_files_wait = 0

    def add(self, root_pid: int, reaper_pid: int, exclude: frozenset[int] = frozenset()) -> None:
        """Count a program with its supervisor.

        Args:
            root_pid: the program; it is counted even if the supervisor has ended.
            reaper_pid: the supervisor; it is not counted.
            exclude: other children of the supervisor, not counted, nor their descendants.
        """
        self._reapers.append(_Reaper(reaper_pid, self._proc))
        self._never |= {str(reaper_pid), *map(str, exclude)}
        for pid in self._never & self._known.keys():
            del self._known[pid]
        # Foreign processes may belong to this program, so all are checked again.
        self._foreign = set(self._never)
        self._population = b""
        stat = read_stat(f"{self._proc}/{root_pid}")
        if stat:
            self._known[str(root_pid)] = stat.start

    def read(self) -> dict[str, Reading]:
        """Read all `job_*` metrics of the processes; see `teho.model.metric`.

        CPU time in s and I/O in bytes are sums over live processes, with the children that they
        waited for. `job_memory_bytes` is the estimate `sum(resident - shared) + max(shared)`.
        Metrics that this sample does not read are left out.
        """
        try:
            self._scan()
            return self._sample()
        except (OSError, ValueError) as error:
            # For example too many open files. Then the whole sample is missing.
            missing = Missing(Reason.FAILED, f"{self._proc}: {error}")
            return dict.fromkeys(METRICS, missing)

    def _scan(self) -> None:
        """Find the processes that started or ended."""
        population = procstat.population(self._proc)
        is_recheck = self._scans % _RECHECK_SCANS == 0  # a pid may be used again
        self._scans += 1
        if population and population == self._population and not is_recheck:
            return  # no process has started or was waited for
        names = set(os.listdir(self._proc))
        # A process that is not in the listing was waited for before the reads that follow.
        for reaper in self._reapers:
            reaper.read()
        self._foreign = set(self._never) if is_recheck else self._foreign & names
        self._population = population if self._compare(names) else b""

    def _compare(self, names: set[str]) -> bool:
        """Compare a listing of /proc with the known processes; return whether all are decided."""
        for pid in self._known.keys() - names:
            self._lose(pid)
        new: dict[str, ProcStat] = {}
        for pid in names - self._foreign - self._known.keys():
            stat = read_stat(f"{self._proc}/{pid}") if pid.isdigit() else None
            if stat:
                new[pid] = stat
            else:
                self._foreign.add(pid)
        self._adopt(new)
        return all(map(self._is_decided, new))

    def _adopt(self, new: dict[str, ProcStat]) -> None:
        """Decide whether new processes are the program's."""
        undecided = set()
        reapers = {reaper.pid for reaper in self._reapers if not reaper.ended}
        for pid in tuple(new):
            line, above = [], pid
            while above in new and above not in line and not self._is_decided(above):
                line.append(above)
                above = new[above].parent
            if above in self._known or above in reapers:
                self._known.update((pid, new[pid].start) for pid in reversed(line))
            elif above in self._never:
                self._foreign.update(line)
            elif above == "0" or above in self._foreign:
                self._divide(line, new)
            else:
                # The parent ended after the listing, and the next scan shows the new parent. Or it
                # is hidden as another user's, and the next scan does not show it either.
                undecided.update(line)
                self._divide([pid for pid in line if pid in self._undecided], new)
        self._undecided = undecided

    def _divide(self, line: list[str], new: dict[str, ProcStat]) -> None:
        """Decide on new processes without a supervisor, each before its parent."""
        for place, pid in enumerate(reversed(line)):
            if self._belongs and self._belongs(f"{self._proc}/{pid}"):
                theirs = line[: len(line) - place]
                self._known.update((one, new[one].start) for one in reversed(theirs))
                self._members[pid] = _NOTHING
                return
            if self._belongs is None or _age_ticks(new[pid]) > _YOUNG_TICKS:
                self._foreign.add(pid)

    def _lose(self, pid: str) -> None:
        """Remove an ended process, and keep the use of a member."""
        del self._known[pid]
        used = self._members.pop(pid, None)
        if used:
            self._left = _plus(self._left, used)

    def _is_decided(self, pid: str) -> bool:
        return pid in self._known or pid in self._foreign

    def _sample(self) -> dict[str, Reading]:
        complete = True
        total = _NOTHING
        for reaper in self._reapers:
            total = _plus(total, reaper.used)
        ended_ticks = 0
        io_missing = next((one.io_missing for one in self._reapers if one.io_missing), None)
        live: dict[str, ProcStat] = {}
        resident: list[int] = []
        shared: list[int] = []
        pids = []
        for pid, start in tuple(self._known.items()):
            directory = f"{self._proc}/{pid}"
            stat = read_stat(directory)
            if stat is None or stat.start != start:
                self._lose(pid)
                complete = False
                continue
            pids.append(int(pid))
            seen = self._members.get(pid)
            ticks, io = stat.own_ticks + stat.children_ticks, seen[1:] if seen else _NO_IO
            ended_ticks += stat.children_ticks
            try:
                if not stat.is_dead:
                    pages = procstat.slurp(directory + "/statm").split(None, 3)
                    resident.append(int(pages[1]) * _PAGE_BYTES)
                    shared.append(int(pages[2]) * _PAGE_BYTES)
                    live[pid] = stat
                if not io_missing:
                    io = read_io(directory)
            except PermissionError as error:
                io_missing = missing_because(error, directory + "/io")
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                complete = False
            if seen:
                self._members[pid] = (ticks, *io)
            total = _plus(total, (ticks, *io))
        self.pids, self.cpu_ticks = frozenset(pids), _ticks_of(live)
        self.is_deserted = not live
        total = _plus(total, self._left)
        cpu, *io_counters = self._counters
        for counter, amount in zip(self._counters, total, strict=True):
            if counter is cpu or not io_missing:
                counter.update(amount, complete=complete)
        self._ended.update(ended_ticks, complete=complete)
        threads = sum(stat.threads for stat in live.values())
        readings: dict[str, Reading] = {
            "job_cpu_s": cpu.value / _TICKS_PER_S,
            "job_ended_cpu_s": self._ended.value / _TICKS_PER_S,
            "job_processes": len(live),
            "job_threads": threads,
            "job_memory_bytes": sum(resident) - sum(shared) + max(shared, default=0),
            "job_resident_bytes": sum(resident),
            "job_shared_bytes": sum(shared),
        }
        for name, counter in zip(_IO_METRICS, io_counters, strict=True):
            readings[name] = io_missing or counter.value
        for name, before in self._used_before.items():
            if isinstance(now := readings.get(name), (int, float)):
                readings[name] = max(0, now - before)
        readings.update(self._now_and_then(live, threads))
        return readings

    def _now_and_then(self, live: dict[str, ProcStat], threads: int) -> dict[str, Reading]:
        """Read metrics that are too expensive for every sample."""
        readings: dict[str, Reading] = {}
        self._runnable_wait -= 1
        if self._runnable_wait <= 0:
            # A program with 1,000 threads is read every 32nd sample, so 32 threads per sample.
            self._runnable_wait = -(-threads // _THREADS_PER_SAMPLE)
            found = {pid: read_threads(f"{self._proc}/{pid}", stat) for pid, stat in live.items()}
            readings["job_runnable_threads"] = sum(one.runnable for one in found.values())
            readings.update(self._openmp.read({pid: one.ticks for pid, one in found.items()}))
        self._open_files_wait -= 1
        if self._open_files_wait <= 0:
            self._open_files_wait = _OPEN_FILES_SAMPLES
            readings["job_open_files"] = _open_files([f"{self._proc}/{pid}/fd" for pid in live])
        return readings


def _ticks_of(processes: Mapping[str, ProcStat]) -> dict[int, int]:
    return {int(pid): stat.own_ticks for pid, stat in processes.items()}


def _age_ticks(stat: ProcStat) -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S - int(stat.start)


def _open_files(directories: Sequence[str]) -> Reading:
    count = 0
    for directory in directories:
        try:
            count += len(os.listdir(directory))
        except PermissionError as error:
            return missing_because(error, directory)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
    return count
