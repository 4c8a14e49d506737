"""What a program needs, in the user's words."""

from __future__ import annotations

import msgspec

__all__ = ["DEFAULT_TIME_S", "Request"]

DEFAULT_TIME_S = 3600.0
"""Planned and written where a request says no time: no site calls an hour too short."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a program needs. None: not said; the plan chooses the site's fair share."""

    command: tuple[str, ...] = ()
    gpus: int = 1
    """Of the whole job; 0: a job without GPUs."""
    gpu_memory_gib: float | None = None
    """Of each GPU, at least."""
    gpu_type: str | None = None
    nodes: int | None = None
    cpus_per_gpu: int | None = None
    """Cores for each GPU; for a job without GPUs, `cpus` says it."""
    cpus: int | None = None
    """Cores of the whole job."""
    memory_mib: int | None = None
    """Of each node: that is what a scheduler's `--mem` means."""
    time_s: float | None = None
    """None: not said; `DEFAULT_TIME_S` is planned."""
    local_disk_gib: float | None = None
    """Of each node."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    """Slurm's quality of service."""
    reservation: str | None = None
    licenses: str | None = None
    """As Slurm writes them, such as `matlab:2`."""
    exclusive: bool = False
    """Whether no other job may run on the nodes: they are given, and billed, whole."""
    launcher: str = "plain"
    """Who starts the program's processes: the name of a file of `teho.launchers`."""
    name: str = ""
    """Of the job."""
    lines: tuple[str, ...] = ()
    """The user's own lines of shell, before the command."""
