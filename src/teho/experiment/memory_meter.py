"""Measures the memory of a program that runs, and finds out when the memory is almost full."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from teho.devices.host.cgroup import MemoryCgroup
from teho.devices.procfile import read_text
from teho.devices.sources import open_gpus
from teho.experiment.out_of_memory import Kills
from teho.experiment.started import marked
from teho.model.batch_sizes import MemoryUse
from teho.model.device import DeviceSource, Reading
from teho.patterns import lazy_pattern
from teho.units import format_bytes

__all__ = ["MemoryMeter"]

_SAMPLE_S = 1.0
"""Time between two readings of all processes and GPUs. The kernel keeps the peak of each process,
and PyTorch keeps the GPU memory that it has allocated, so peaks between two readings count too."""
_NEAR = 0.95
"""Share of the host's memory above which a run is ended, before the kernel kills processes."""

_LIMIT = lazy_pattern(r"^Max (?:data size|address space) +(\d+)", re.MULTILINE)
"""A limit in `/proc/PID/limits`; without one, there is a word instead of the number."""


class MemoryMeter:
    """The memory of one program after another.

    Args:
        limit_bytes: memory of the host that the job may use; None: not known.
        environment: the program's, with variables such as `CUDA_VISIBLE_DEVICES`.
        root: root of the file system; `/` except in tests.
        gpus: the sources of the job's GPUs; None: they are opened.
    """

    def __init__(
        self,
        limit_bytes: int | None,
        environment: Mapping[str, str],
        root: Path = Path("/"),
        gpus: Sequence[DeviceSource] | None = None,
    ) -> None:
        self.limit_bytes = limit_bytes
        self._root = root
        self._gpus = open_gpus(environment, root)[0] if gpus is None else list(gpus)
        self._sizes = {device.id: device.memory_bytes for it in self._gpus for device in it.devices}
        job_id = environment.get("SLURM_JOB_ID") or environment.get("JOB_ID")
        self._node_bytes = self._node().get("MemTotal")
        self._cgroup = MemoryCgroup(root, job_id, self._node_bytes)
        self.begin()

    def begin(self) -> None:
        """Forget the previous run."""
        self._sampled_s = -math.inf
        self._now_bytes = 0
        self._host_bytes = 0
        self._process_limits: set[int] = set()
        self._of_gpus: dict[str, tuple[int | None, int | None]] = {}
        self._kills = self._counted()

    def sample(self, mark: str) -> str:
        """Read the memory; return why the run must end, because the host's memory is almost full.

        Args:
            mark: entry in the environment of the program's processes.
        """
        now_s = time.monotonic()
        if now_s - self._sampled_s >= _SAMPLE_S:
            self._sampled_s = now_s
            pids = marked(mark)
            sizes = [_memory_bytes(self._root, pid) for pid in pids]
            self._now_bytes = sum(now for now, _ in sizes)
            self._host_bytes = max(self._host_bytes, sum(peak for _, peak in sizes))
            for pid in pids:
                limits = read_text(self._root / "proc" / str(pid) / "limits")
                self._process_limits.update(map(int, _LIMIT.findall(limits)))
            if pids:
                self._read_gpus(frozenset(pids))
        return self._almost_full()

    def _read_gpus(self, pids: frozenset[int]) -> None:
        for source in self._gpus:
            for id_, readings in source.read(pids).items():
                own, used = self._of_gpus.get(id_, (None, None))
                self._of_gpus[id_] = (
                    _higher(own, readings.get("gpu_job_memory_bytes")),
                    _higher(used, readings.get("gpu_memory_used_bytes")),
                )

    def _almost_full(self) -> str:
        found: list[tuple[int, int, str]] = []
        cgroup_bytes = self._cgroup.read().get("job_memory_bytes")
        if isinstance(cgroup_bytes, int) and self._cgroup.limit_bytes:
            found.append((cgroup_bytes, self._cgroup.limit_bytes, "the job's memory"))
        if self.limit_bytes:
            found.append((self._now_bytes, self.limit_bytes, "the memory that it may use"))
        node = self._node()
        free_bytes = node.get("MemAvailable")
        # With a limit of its own, the job cannot fill the node.
        if self._node_bytes and free_bytes is not None and not self._cgroup.limit_bytes:
            used_bytes = self._node_bytes - free_bytes
            which = "the node's memory, which other programs use too"
            found.append((used_bytes, self._node_bytes, which))
        for used_bytes, most_bytes, which in found:
            if used_bytes >= _NEAR * most_bytes:
                return (
                    f"Teho ended the program when {format_bytes(used_bytes)} of "
                    f"{format_bytes(most_bytes)} were in use, before the program filled {which}"
                )
        return ""

    def use(self, *, on_gpu: bool) -> MemoryUse:
        """Return the peaks since the beginning.

        Args:
            on_gpu: whether the program computes on a GPU. If the driver does not report the memory
                of each process, the figures of all programs are left out for other programs.
        """
        of_host = MemoryUse(
            host_bytes=self._host_bytes or None,
            process_limit_bytes=min(self._process_limits, default=None),
        )
        filled = [
            (own or used or 0, id_)
            for id_, (own, used) in self._of_gpus.items()
            if own or (own is None and used and on_gpu)
        ]
        if not filled:
            return of_host
        _, fullest = max(filled)
        own, used = self._of_gpus[fullest]
        return msgspec.structs.replace(
            of_host,
            gpu_bytes=own,
            gpu_used_bytes=used,
            gpu_total_bytes=self._sizes.get(fullest),
        )

    def kills(self) -> Kills:
        """Return the number of processes that the kernel killed since the beginning."""
        return Kills(*map(_more, self._counted(), self._kills))

    def _counted(self) -> Kills:
        of_job = self._cgroup.read().get("oom_kills")
        words = dict(_pairs(read_text(self._root / "proc/vmstat")))
        return Kills(of_job if isinstance(of_job, int) else None, words.get("oom_kill"))

    def _node(self) -> dict[str, int]:
        lines = read_text(self._root / "proc/meminfo")
        return {name.rstrip(":"): 1024 * kib for name, kib in _pairs(lines)}

    def close(self) -> None:
        """Close all devices and files."""
        self._cgroup.close()
        for source in self._gpus:
            source.close()


def _memory_bytes(root: Path, pid: int) -> tuple[int, int]:
    """Return the memory of a process without files, now and at its peak.

    Memory that processes share is divided among them. The peak is the present memory and the
    difference to the largest resident set. Without permission, or if the process has ended, both
    are 0.
    """
    folder = root / "proc" / str(pid)
    parts = {name.rstrip(":"): kib for name, kib in _pairs(read_text(folder / "smaps_rollup"))}
    status = {name.rstrip(":"): kib for name, kib in _pairs(read_text(folder / "status"))}
    if "Rss" in parts:
        now = parts.get("Pss_Anon", 0) + parts.get("Pss_Shmem", 0)
        if "Pss_Anon" not in parts:  # before Linux 5.3
            now = max(0, parts.get("Pss", 0) - status.get("RssFile", 0))
        higher = max(0, status.get("VmHWM", 0) - parts["Rss"])
    else:  # before Linux 4.14
        now = status.get("RssAnon", 0) + status.get("RssShmem", 0)
        higher = max(0, status.get("VmHWM", 0) - status.get("VmRSS", 0))
    return 1024 * now, 1024 * (now + higher)


def _pairs(text: str) -> list[tuple[str, int]]:
    """Return the name and the number of each line `name number`, with or without a unit."""
    words = [line.split() for line in text.splitlines()]
    return [(one[0], int(one[1])) for one in words if len(one) in {2, 3} and one[1].isdigit()]


def _higher(before: int | None, reading: Reading | None) -> int | None:
    if not isinstance(reading, (int, float)):
        return before
    return max(before or 0, int(reading))


def _more(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else now - before
