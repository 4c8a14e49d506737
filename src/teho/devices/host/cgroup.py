"""The cgroups of this process, version 1 or 2: memory limit, use, page cache, kills; CPU quota.

The memory figures are the job's only if the cgroup belongs to the job; see `own`.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from teho.devices.host.part import Part
from teho.devices.procfile import ProcFile, read_text, unescape
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["MemoryCgroup", "cpu_quota"]

# The kernel writes "no limit" as `max` (v2) or as the largest whole page count (v1).
_NO_LIMIT = 1 << 60

_NO_KILLS = Missing(Reason.UNSUPPORTED, "this kernel does not count out-of-memory kills")
_V2_KERNEL = (
    b"kernel_stack",
    b"pagetables",
    b"sec_pagetables",
    b"percpu",
    b"sock",
    b"vmalloc",
    b"slab_unreclaimable",
)


class _Level(NamedTuple):
    """One cgroup on the path from this process to the visible root."""

    directory: Path
    name: PurePosixPath


class MemoryCgroup(Part):
    """The memory cgroup of this process.

    Args:
        root: root of the file system; `/` except in tests.
        job_id: the scheduler's number of the job, which occurs in the names of its cgroups.
        node_memory_bytes: memory of the whole node; larger limits have no effect.

    Attributes:
        version: 1 or 2; None if no memory cgroup is visible.
        limit_bytes: the smallest limit on the path to the root; None for no limit.
        own: whether the figures are the job's, and not the whole machine's. Then this cgroup, or
            one above, is named after a job or has a limit below the node's memory.
        metrics: the metrics that `read` returns.
    """

    def __init__(self, root: Path, job_id: str | None, node_memory_bytes: int | None) -> None:
        super().__init__()
        # In version 2, a cgroup without the memory controller does not have the file.
        self.version, levels = _find(root, "memory", ("memory.stat", "memory.stat"))
        self.limit_bytes: int | None = None
        self.own = False
        self.metrics: tuple[str, ...] = ("job_cache_bytes", "oom_kills")
        self._files: tuple[ProcFile, ProcFile] | None = None
        self._missing = Missing(Reason.ABSENT, "no memory cgroup is visible here")
        if not levels:
            return
        limits = [_limit(level.directory, self.version) for level in levels]
        self.limit_bytes = min((limit for limit in limits if limit is not None), default=None)
        place = _job_place(levels, limits, job_id, node_memory_bytes)
        if place is None:
            self._missing = Missing(
                Reason.ABSENT,
                "the job has no memory cgroup of its own: this cgroup is for the whole machine",
            )
            return
        self.own = True
        self.metrics = ("job_memory_bytes", *self.metrics)
        kills = "memory.events" if self.version == 2 else "memory.oom_control"
        self._files = (
            self._open(levels[place].directory / "memory.stat"),
            # Version 1 counts a kill only in the victim's cgroup, version 2 also in all above.
            self._open(levels[place if self.version == 2 else 0].directory / kills),
        )

    def read(self) -> dict[str, Reading]:
        """Return `job_memory_bytes`, `job_cache_bytes` and `oom_kills`.

        If the cgroup is not the job's, the first is left out and the others are missing.

        Version 2 (kernel, Documentation/admin-guide/cgroup-v2.rst): memory used is
        `anon + shmem` and the parts of kernel memory that cannot be reclaimed; cache
        is `file - shmem`, because `file` includes tmpfs and shared memory, which no
        pressure can drop. Version 1 (cgroup-v1/memory.rst): `total_rss +
        total_shmem`, and `total_cache - total_shmem`; kernel memory is accounted
        elsewhere there. A kernel before 4.10 has no `shmem` in version 1: shared
        memory then counts as cache.
        """
        if self._files is None:
            return self._all(self._missing)
        stat, events = (_read_flat(file) for file in self._files)
        used, cache = _used_and_cache(stat, self.version)
        kills = events if isinstance(events, Missing) else events.get(b"oom_kill", _NO_KILLS)
        return {"job_memory_bytes": used, "job_cache_bytes": cache, "oom_kills": kills}


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return how many CPUs' time this process may use, as a container's `--cpus`; None: no quota.

    It is the least quota over its period on the way up to the root: `cpu.max` (kernel,
    Documentation/admin-guide/cgroup-v2.rst), or `cpu.cfs_quota_us` and `cpu.cfs_period_us`
    (scheduler/sched-bwc.rst).
    """
    version, levels = _find(root, "cpu", ("cpu.cfs_quota_us", "cpu.max"))
    shares = []
    for directory, _ in levels:
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = " ".join(read_text(directory / name) for name in names).split()
        # No quota is written as `max`, or as -1.
        if len(words) == 2 and all(re.fullmatch(r"0*[1-9]\d{0,14}", word) for word in words):
            shares.append(int(words[0]) / int(words[1]))
    return min(shares, default=None)


def _used_and_cache(
    stat: dict[bytes, int] | Missing, version: int | None
) -> tuple[Reading, Reading]:
    if isinstance(stat, Missing):
        return stat, stat
    try:
        if version == 2:
            # Older kernels report fewer parts of kernel memory.
            kernel = sum(stat.get(name, 0) for name in _V2_KERNEL)
            cache = max(0, stat[b"file"] - stat[b"shmem"])
            return stat[b"anon"] + stat[b"shmem"] + kernel, cache
        # Old kernels may have no total_* without a hierarchy.
        prefix = b"total_" if b"total_rss" in stat else b""
        shared = stat.get(prefix + b"shmem", 0)
        return stat[prefix + b"rss"] + shared, max(0, stat[prefix + b"cache"] - shared)
    except KeyError as error:
        missing = Missing(Reason.UNSUPPORTED, f"memory.stat has no line {error.args[0].decode()}")
        return missing, missing


def _read_flat(file: ProcFile) -> dict[bytes, int] | Missing:
    """Read lines of `name number`; other lines are skipped."""
    data = file.read()
    if isinstance(data, Missing):
        return data
    pairs = (line.split() for line in data.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _job_place(
    levels: list[_Level],
    limits: list[int | None],
    job_id: str | None,
    node_memory_bytes: int | None,
) -> int | None:
    """Return the position of the level that contains exactly the job.

    It is the highest level that is named after the job, or the level with the limit if that is
    below: a step may have a smaller limit than its job. A level with a limit but without a job's
    name contains this user's processes or a container.
    """
    named = max((i for i, level in enumerate(levels) if _names_job(level.name, job_id)), default=-1)
    effective = [
        (limit, -i)
        for i, limit in enumerate(limits)
        if limit is not None and (node_memory_bytes is None or limit < node_memory_bytes)
    ]
    # If a job and its step have equal limits, the job's level is taken.
    limiting = -min(effective)[1] if effective else -1
    if named >= 0 and limiting >= 0:
        return min(named, limiting)
    return max(named, limiting) if max(named, limiting) >= 0 else None


def _names_job(name: PurePosixPath, job_id: str | None) -> bool:
    """Return whether a cgroup's path has a part such as `job_123`, `123.1` or `job.123.456`."""
    number = re.escape(job_id) if job_id else r"\d+"
    pattern = rf"job[_.-]?{number}(\D.*)?" + (rf"|{number}(\.[\w-]+)*" if job_id else "")
    return any(re.fullmatch(pattern, part) for part in name.parts)


def _limit(directory: Path, version: int | None) -> int | None:
    """Return the limit of a cgroup in bytes; None for no limit."""
    texts = [read_text(directory / ("memory.max" if version == 2 else "memory.limit_in_bytes"))]
    if version == 1:
        # The kernel's minimum includes levels above the mounted ones.
        stat = read_text(directory / "memory.stat")
        texts += re.findall(r"^hierarchical_memory_limit (\d+)$", stat, re.MULTILINE)
    limits = [int(text) for text in texts if text.isascii() and text.isdigit()]
    return min((limit for limit in limits if limit < _NO_LIMIT), default=None)


def _find(root: Path, wanted: str, files: tuple[str, str]) -> tuple[int | None, list[_Level]]:
    """Return the version, and the levels that have a controller's file, innermost first.

    Args:
        root: root of the file system.
        wanted: the controller.
        files: its file in version 1, and in version 2.
    """
    memberships = read_text(root / "proc/self/cgroup").splitlines()
    version, path = None, ""
    for line in memberships:
        hierarchy, _, rest = line.partition(":")
        controllers, _, where = rest.partition(":")
        if wanted in controllers.split(","):
            version, path = 1, where
            break
        if hierarchy == "0" and not controllers:
            version, path = 2, where
    if version is None:
        return None, []
    for mount_root, mount_point in _mounts(root, version, wanted):
        levels = [
            level
            for level in _way_up(root, path, mount_root, mount_point)
            if (level.directory / files[version - 1]).exists()
        ]
        if levels:
            return version, levels
    return None, []


def _mounts(root: Path, version: int, wanted: str) -> list[tuple[str, str]]:
    """Return (path in the hierarchy, mount point) for each mount of a controller's hierarchy."""
    found = []
    for line in read_text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 3:
            continue
        is_wanted = kind[0] == "cgroup" and wanted in kind[2].split(",")
        if kind[0] == "cgroup2" if version == 2 else is_wanted:
            found.append((unescape(fields[3]), unescape(fields[4])))
    return found


def _way_up(root: Path, path: str, mount_root: str, mount_point: str) -> list[_Level]:
    """Return the cgroups from `path` up to the mount's root.

    In a container, a lower part of the hierarchy may be mounted, or `path` may be outside of the
    mounted part. Then only the top of the mounted part is returned.
    """
    top = root / mount_point.lstrip("/")
    inside, base = PurePosixPath(path), PurePosixPath(mount_root)
    parts = inside.relative_to(base).parts if inside.is_relative_to(base) else inside.parts[1:]
    if ".." in parts or not top.joinpath(*parts).is_dir():
        return [_Level(top, base)]
    return [
        _Level(top.joinpath(*parts[:depth]), base.joinpath(*parts[:depth]))
        for depth in range(len(parts), -1, -1)
    ]
