"""Every check: a short file each, that judges the snapshot and nothing beside it."""

from __future__ import annotations

from teho.doctor.checks import (
    active_environment,
    affinity,
    binding_numa,
    clock,
    collectives,
    compute_capability,
    container,
    cpu_only_build,
    disk_space,
    driver_too_old,
    framework_sees_gpus,
    gpus_allocated,
    home_caches,
    internet,
    limits,
    mig,
    openmp_hints,
    packages,
    quota,
    retired_cluster,
    scratch_unused,
    share,
    shared_memory,
    small_files,
    threads,
)
from teho.doctor.outcome import Check

__all__ = ["CHECKS"]

CHECKS: tuple[Check, ...] = (
    gpus_allocated,
    container,
    cpu_only_build,
    driver_too_old,
    compute_capability,
    framework_sees_gpus,
    packages,
    collectives,
    mig,
    affinity,
    binding_numa,
    threads,
    openmp_hints,
    share,
    active_environment,
    limits,
    shared_memory,
    disk_space,
    quota,
    home_caches,
    scratch_unused,
    small_files,
    internet,
    clock,
    retired_cluster,
)
"""In the order in which they are told where nothing is wrong."""
