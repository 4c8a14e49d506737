"""The host as a source of readings: CPU, memory, processes, I/O, network and energy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from teho.devices.host.cgroup import MemoryCgroup
from teho.devices.host.cpu import Cpu
from teho.devices.host.disks import Disks
from teho.devices.host.energy import open_host_energy
from teho.devices.host.netfs import NetworkFileSystems
from teho.devices.host.network import Network
from teho.devices.host.part import FilePart, Part
from teho.devices.host.proctree import METRICS as JOB_METRICS
from teho.devices.host.proctree import ProcessTree
from teho.devices.host.space import TemporarySpace
from teho.devices.procfile import read_text, words_of
from teho.model.device import Device, GpuDetails, Reading, Readings
from teho.model.missing import Missing, Reason

__all__ = ["HostFacts", "HostSource", "describe_host"]

_MEMORY = (b"MemTotal", b"MemAvailable", b"Buffers", b"Cached", b"Shmem")


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware of a node."""

    cpu_model: str
    """The kernel's name; empty if not known."""
    core_count: int | None
    """Number of logical CPUs that are online."""
    memory_bytes: int | None


def describe_host(root: Path = Path("/")) -> HostFacts:
    """Return the facts of this node; unknown facts are empty or None."""
    cpuinfo = read_text(root / "proc/cpuinfo")
    # x86 and RISC-V, Arm boards, Power.
    model = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    cores = re.findall(r"^cpu\d+ ", read_text(root / "proc/stat"), re.MULTILINE)
    memory = _meminfo(read_text(root / "proc/meminfo").encode()).get(b"MemTotal")
    return HostFacts(
        cpu_model=model.group(1).strip() if model else "",
        core_count=len(cores) or None,
        memory_bytes=memory,
    )


class HostSource:
    """Every metric of scope `node`, under the device id `node`.

    Args:
        tree: the program's processes; None if no program is followed.
        cores: the job's logical CPUs.
        environment: the job's, with its number (`SLURM_JOB_ID` or `JOB_ID`).
        root: root of the file system; `/` except in tests.

    Attributes:
        pids: the program's processes at the last read.
        cgroup_limit_bytes: the cgroup's memory limit; None for none.
    """

    devices: tuple[Device, ...] = ()

    def __init__(
        self,
        tree: ProcessTree | None,
        cores: tuple[int, ...],
        environment: Mapping[str, str],
        root: Path = Path("/"),
    ) -> None:
        self._tree = tree
        job_id = environment.get("SLURM_JOB_ID") or environment.get("JOB_ID")
        cgroup = MemoryCgroup(root, job_id, describe_host(root).memory_bytes)
        network = Network(root)
        self.cgroup_limit_bytes = cgroup.limit_bytes
        self.notes: tuple[str, ...] = network.notes
        # The cgroup is read after the tree, so its `job_memory_bytes` has priority.
        self._parts: tuple[Part, ...] = (
            Cpu(root, cores),
            _Load(root / "proc/loadavg"),
            _NodeMemory(root / "proc/meminfo"),
            cgroup,
            Disks(root),
            NetworkFileSystems(root),
            network,
            TemporarySpace(root, environment),
            open_host_energy(root),
        )

    @property
    def pids(self) -> frozenset[int]:
        """The program's processes at the last read."""
        return self._tree.pids if self._tree else frozenset()

    @property
    def cpu_ticks(self) -> Mapping[int, int]:
        """The CPU time of each of these processes, in clock ticks."""
        return self._tree.cpu_ticks if self._tree else {}

    def read(self, pids: frozenset[int] = frozenset(), *, ends: bool = False) -> Readings:  # noqa: ARG002 - of DeviceSource
        """Read all metrics; see `teho.model.device.DeviceSource`.

        Args:
            pids: not used; the tree finds them.
            ends: not used.
        """
        readings: dict[str, Reading] = {}
        if self._tree:
            readings.update(self._tree.read())
        else:
            missing = Missing(Reason.ABSENT, "no program is recorded")
            readings.update(dict.fromkeys(JOB_METRICS, missing))
        for part in self._parts:
            try:
                readings.update(part.read())
            except (ValueError, IndexError) as error:
                # This kernel writes a file in another format.
                missing = Missing(Reason.FAILED, f"{type(part).__name__}: {error}")
                readings.update(dict.fromkeys(part.metrics, missing))
        return {"node": readings}

    def details(self) -> dict[str, GpuDetails]:
        """Return an empty dictionary, because a host is no GPU."""
        return {}

    def alerts(self) -> list[str]:
        """Return an empty list, because a host has no alerts."""
        return []

    def close(self) -> None:
        """Close all files."""
        for part in self._parts:
            part.close()


class _Load(FilePart):
    """The load average of /proc/loadavg."""

    metrics: tuple[str, ...] = ("load_1min",)

    def values_in(self, data: bytes) -> dict[str, Reading]:
        return {"load_1min": float(data.split(None, 1)[0])}


class _NodeMemory(FilePart):
    """The node's memory, from /proc/meminfo (proc(5))."""

    metrics: tuple[str, ...] = ("node_memory_used_bytes", "node_cache_bytes")

    def values_in(self, data: bytes) -> dict[str, Reading]:
        """Return used memory, `MemTotal - MemAvailable`, and cache, `Buffers + Cached - Shmem`.

        `Cached` includes tmpfs and shared memory, which the kernel cannot drop.
        """
        info = _meminfo(data)
        try:
            used = info[b"MemTotal"] - info[b"MemAvailable"]
            cache = info[b"Buffers"] + info[b"Cached"] - info[b"Shmem"]
        except KeyError as error:
            line = error.args[0].decode()
            return self._all(Missing(Reason.UNSUPPORTED, f"no {line} in /proc/meminfo"))
        return dict(zip(self.metrics, (max(0, used), max(0, cache)), strict=True))


def _meminfo(data: bytes) -> dict[bytes, int]:
    """Return the used fields of /proc/meminfo (proc(5)), in bytes."""
    lines = {name: words_of(data, name + b":") for name in _MEMORY}
    return {name: int(words[0]) * 1024 for name, words in lines.items() if words[1:] == [b"kB"]}
