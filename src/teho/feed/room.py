"""What this process may use: cores and memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from teho.errors import InputError

__all__ = ["cores", "free_host_bytes"]

_MOST_CORES = 32
"""More workers than this rarely load faster."""


def cores() -> int:
    """Return the number of cores that this rank may use: its share of the job's cores here."""
    from teho.devices.host.cgroup import cpu_quota
    from teho.schedulers.allocation import read_allocation

    own = frozenset(os.sched_getaffinity(0))
    requested = read_allocation(os.environ, own, None, None, cpu_quota()).cores_asked
    ranks = _ranks_here(os.environ)
    # If each rank is bound to cores of its own, the affinity is already the rank's share.
    usable = min(len(own), requested // ranks) if requested else len(own) // ranks
    return max(1, min(usable, _MOST_CORES))


def _ranks_here(environment: Mapping[str, str]) -> int:
    """Return the number of ranks of this job on this node; 1 if the launcher does not report it."""
    from teho.launchers.task_variables import INNERMOST_FIRST
    from teho.schedulers.hostlist import is_number
    from teho.schedulers.task import read_task

    # Of torchrun and `teho launch`; it also counts if srun or mpirun started these.
    names = ["LOCAL_WORLD_SIZE"]
    names += [one.local_size for one in INNERMOST_FIRST if one.started(environment)]
    for name in names:
        if is_number(value := environment.get(name, "")):
            return max(1, int(value))
    with suppress(InputError):
        task = read_task(environment, "")
        # Without its own number, another launcher would count the ranks of all nodes.
        if task.started_by == "Slurm":
            return task.local_size
    return 1


def free_host_bytes(root: Path = Path("/")) -> int:
    """Return the memory in bytes that is free on this node and within the job's limit."""
    from teho.devices.host.cgroup import MemoryCgroup

    lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    info = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    free = info["MemAvailable"]
    job_id = os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID")
    cgroup = MemoryCgroup(root, job_id, info["MemTotal"])
    used = cgroup.read().get("job_memory_bytes")
    cgroup.close()
    if cgroup.limit_bytes is not None and isinstance(used, int):
        free = min(free, cgroup.limit_bytes - used)
    return max(0, free)
