"""What the scheduler says of this job on this node, read from its environment.

Nothing is asked of the scheduler itself: the environment is there on every node of
every job, at once, and costs nothing. A value that is not as documented becomes a
note of the allocation, never an error.
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
    """Read the job's share of this node.

    Each scheduler's folder knows its variables; outside of a job the scheduler is None. The
    memory limit is the smallest of the cgroup's, the request's and the node's. It never raises.

    Args:
        environment: the program's environment.
        cores: logical CPUs of the affinity.
        cgroup_limit_bytes: None for no limit, or none known.
        node_memory_bytes: memory of the whole node, None if not known.
        cpu_quota: how many CPUs' time the cgroup gives, None for no limit.
    """
    variables = Variables(environment)
    facts: dict[str, Any] = {}
    requested_bytes = None
    for scheduler in schedulers().values():
        if (found := scheduler.allocation(variables)) is None:
            continue
        if scheduler.is_this_machine:
            # It may run inside a scheduler's job, whose share of the node it then has.
            facts |= found[0]
        elif not facts:
            facts, requested_bytes = found
    limits = [
        (limit, -rank, source)
        for rank, (limit, source) in enumerate(
            (
                (node_memory_bytes, "node"),
                (requested_bytes, "scheduler"),
                (cgroup_limit_bytes, "cgroup"),
            )
        )
        if limit is not None
    ]
    limit, _, source = min(limits, default=(None, 0, ""))
    asked = facts.get("cores_asked")
    if cpu_quota is not None and cpu_quota < min(len(cores), asked or len(cores)):
        facts["cores_asked"] = math.ceil(cpu_quota)
        variables.notes.append(
            f"The container or cgroup has the time of {cpu_quota:g} CPUs and may run on "
            f"{len(cores)}, so CPU figures per core include others' work."
        )
    elif asked is not None and len(cores) > asked:
        variables.notes.append(
            f"The job asked for {asked} CPUs on this node but may run on {len(cores)}: it is not "
            "bound to its own, so CPU figures per core include other jobs' work."
        )
    return Allocation(
        **facts,
        cores=tuple(sorted(cores)),
        memory_limit_bytes=limit,
        memory_limit_source=source,
        notes=tuple(variables.notes),
    )
