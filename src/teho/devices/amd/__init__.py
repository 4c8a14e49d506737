"""AMD's GPUs, through the files of the kernel's driver."""

from __future__ import annotations

from teho.devices.vendor import Vendor, loading

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="amd",
    open_source=loading(f"{__name__}.source", "AmdSource"),
    open_counters=loading(f"{__name__}.source", "AmdEnergy"),
    all_gpus=loading(f"{__name__}.topology", "all_gpus"),
    versions=loading(f"{__name__}.topology", "versions"),
    # HIP counts only the GPUs that ROCr has selected by the first variable.
    visible_variables=("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    device_files="kfd",
    cache_variables=("MIOPEN_USER_DB_PATH",),
    short_counters=frozenset({"gfx908"}),
    order=2,
)
