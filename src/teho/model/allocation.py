"""What the scheduler, the affinity and the cgroup give to this job on this node."""

from __future__ import annotations

import msgspec

__all__ = ["Allocation"]


class Allocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job's own share of one node. `None` means: not known."""

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
    """CPUs of the request on this node, where the scheduler or a cgroup's quota tells."""
    memory_limit_bytes: int | None = None
    memory_limit_source: str = ""
    """Where the limit comes from: `cgroup`, `scheduler` or `node`."""
    gpus_held: int | None = None
    """GPUs that the job holds on this node, visible to the program or not."""
    time_limit_s: float | None = None
    notes: tuple[str, ...] = ()
