"""The user's request for a program."""

from __future__ import annotations

import msgspec

__all__ = ["DEFAULT_TIME_S", "Request"]

DEFAULT_TIME_S = 3600.0
"""Time of a request without a time. No site refuses an hour as too short."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a program needs. None: not given; the plan uses what the site intends for each GPU."""

    command: tuple[str, ...] = ()
    gpus: int = 1
    """GPUs of the whole job; 0: a job without GPUs."""
    gpu_memory_gib: float | None = None
    """Minimum memory of each GPU."""
    gpu_type: str | None = None
    nodes: int | None = None
    cpus_per_gpu: int | None = None
    """Cores per GPU; a job without GPUs uses `cpus`."""
    cpus: int | None = None
    """Cores of the whole job."""
    memory_mib: int | None = None
    """Memory per node, like the scheduler's `--mem`."""
    memory_per_core_mib: int | None = None
    """Memory for each core, instead of `memory_mib`."""
    memory_per_gpu_mib: int | None = None
    """Memory for each GPU, instead of `memory_mib`."""
    time_s: float | None = None
    """None: not given; the plan uses `DEFAULT_TIME_S`."""
    local_disk_gib: float | None = None
    """Local disk per node."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    """Slurm's quality of service."""
    reservation: str | None = None
    licenses: str | None = None
    """Licenses in Slurm's form, such as `matlab:2`."""
    exclusive: bool = False
    """Whether the job gets and pays for whole nodes, without other jobs on them."""
    launcher: str = "plain"
    """Launcher of the program's processes: the name of a file of `teho.launchers`."""
    name: str = ""
    """Name of the job."""
    lines: tuple[str, ...] = ()
    """Shell lines of the user, before the command."""
