"""What this process may use: cores and memory."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cores", "free_host_bytes"]

_MOST_CORES = 32
"""More workers than this rarely load faster."""


def cores() -> int:
    """Return the number of cores of this job on this node, divided by its ranks here."""
    from teho.devices.host.cgroup import cpu_quota
    from teho.schedulers.allocation import read_allocation

    own = frozenset(os.sched_getaffinity(0))
    requested = read_allocation(os.environ, own, None, None, cpu_quota()).cores_asked
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")  # of torchrun and teho launch
    usable = min(len(own), requested or len(own)) // (int(ranks) if ranks.isdigit() else 1)
    return max(1, min(usable, _MOST_CORES))


def free_host_bytes() -> int:
    """Return the memory in bytes that is free on this node and within the job's limit."""
    from teho.devices.host.cgroup import MemoryCgroup

    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    info = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    free = info["MemAvailable"]
    job_id = os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID")
    cgroup = MemoryCgroup(Path("/"), job_id, info["MemTotal"])
    used = cgroup.read().get("job_memory_bytes")
    cgroup.close()
    if cgroup.limit_bytes is not None and isinstance(used, int):
        free = min(free, cgroup.limit_bytes - used)
    return max(0, free)
