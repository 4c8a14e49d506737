"""Read this job's share of this node from its environment.

The scheduler is not asked: the environment is available on every node of every job. A value that
is not as documented becomes a note of the allocation, never an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from teho.model.allocation import Allocation
from teho.schedulers.registry import schedulers
from teho.schedulers.variables import Variables

__all__ = ["read_allocation"]


def read_allocation(
    environment: Mapping[str, str],
    cores: frozenset[int],
    cgroup_limit_bytes: int | None,
    node_memory_bytes: int | None,
    cpu_quota: float | None = None,
) -> Allocation:
    """Read the job's share of this node. The function does not raise errors.

    Each scheduler's folder reads its variables. Outside a job the scheduler is None. The memory
    limit is the smallest of three: cgroup, request (or what comes with the GPUs) and node.

    Args:
        environment: the program's environment.
        cores: logical CPUs of the affinity.
        cgroup_limit_bytes: None: no limit, or not known.
        node_memory_bytes: memory of the whole node. None: not known.
        cpu_quota: CPU time of the cgroup, in CPUs. None: no limit.
    """
    variables = Variables(environment)
    facts: dict[str, Any] = {}
    requested_bytes = None
    for scheduler in schedulers().values():
        if (found := scheduler.allocation(variables)) is None:
            continue
        if scheduler.is_this_machine:
            # It may run inside a scheduler's job, and then has that job's share of the node.
            facts |= found[0]
        elif not facts:
            facts, requested_bytes = found
    sources = (
        ("cgroup", cgroup_limit_bytes),
        ("gpus" if "memory" in facts.get("with_gpus", ()) else "scheduler", requested_bytes),
        ("node", node_memory_bytes),
    )
    limits = {source: limit for source, limit in sources if limit is not None}
    # If two limits are equal, the first source counts.
    source = min(limits, key=limits.__getitem__, default="")
    requested = facts.get("cores_asked")
    if cpu_quota is not None and cpu_quota < min(len(cores), requested or len(cores)):
        facts["cores_asked"] = math.ceil(cpu_quota)
        variables.notes.append(
            f"The container or cgroup may run on {len(cores)} CPUs, but its limit is the CPU time "
            f"of {cpu_quota:g} CPUs. So CPU values per core include the work of other programs."
        )
    elif requested is not None and len(cores) > requested:
        has = "has" if "cores" in facts.get("with_gpus", ()) else "requested"
        variables.notes.append(
            f"The job {has} {requested} CPUs on this node but may run on {len(cores)} CPUs: the "
            "job is not bound to its CPUs. So CPU values per core include the work of other jobs."
        )
    return Allocation(
        **facts,
        cores=tuple(sorted(cores)),
        memory_limit_bytes=limits.get(source),
        memory_limit_source=source,
        notes=tuple(variables.notes),
    )
