"""The checks: one short file each, which reads only the snapshot."""

from __future__ import annotations

from pkgutil import resolve_name

from teho.doctor.outcome import Check

__all__ = ["CHECKS"]

_FILES = (
    "gpus_allocated", "container", "cpu_only_build", "driver_too_old", "compute_capability",
    "framework_sees_gpus", "packages", "collectives", "mig", "affinity", "binding_numa", "threads",
    "openmp_hints", "share", "active_environment", "conda_channels", "limits", "shared_memory",
    "disk_space", "quota", "home_caches", "scratch_unused", "small_files", "internet", "clock",
    "retired_cluster",
)  # fmt: skip


def _check(file: str) -> Check:
    module = resolve_name(f"{__name__}.{file}")
    decisive = getattr(module, "DECISIVE", False)
    return Check(file.replace("_", "-"), module.ABOUT, decisive, module.check)


CHECKS: tuple[Check, ...] = tuple(map(_check, _FILES))
"""In the order in which passed checks are shown."""
