"""Resources of this job on this node, from scheduler, affinity and cgroup."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Union

import msgspec

from teho.model.node import Automatic

__all__ = ["Allocation"]


class Allocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job's share of one node. `None` means: unknown."""

    scheduler: str | None = None
    """`slurm`, `grid_engine`, `local` (`teho submit --local`), or None outside a job."""
    job_id: str | None = None
    step_id: str | None = None
    job_name: str | None = None
    cluster: str | None = None
    partition: str | None = None
    account: str | None = None
    node_count: int | None = None
    node_list: str | None = None
    """As the scheduler writes it, such as `r01g[01-04]`."""
    cores: tuple[int, ...] = ()
    """Logical CPUs that the job may use here, from its affinity and cpuset."""
    cores_asked: int | None = None
    """Requested CPUs on this node, from the scheduler or a cgroup's quota, or the cores that came
    with the GPUs."""
    memory_limit_bytes: int | None = None
    memory_limit_source: str = ""
    """Source of the limit: `cgroup`, `scheduler`, `gpus` (it came with them) or `node`."""
    gpus_held: int | None = None
    """GPUs that are allocated to the job on this node, visible to the program or not."""
    with_gpus: tuple[Automatic, ...] = ()
    """What came with the GPUs, so a request must not name it."""
    time_limit_s: float | None = None
    ends_at: Union[Annotated[datetime, msgspec.Meta(tz=True)], None] = None
    """When the scheduler ends the job."""
    notes: tuple[str, ...] = ()
