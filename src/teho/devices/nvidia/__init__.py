"""NVIDIA's GPUs, through the driver's library NVML."""

from __future__ import annotations

from teho.devices.vendor import Vendor, loading

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="nvidia",
    open_source=loading(f"{__name__}.source", "NvidiaSource"),
    open_counters=loading(f"{__name__}.energy", "NvidiaEnergy"),
    all_gpus=loading(f"{__name__}.inventory", "all_gpus"),
    versions=loading(f"{__name__}.inventory", "versions"),
    visible_variables=("CUDA_VISIBLE_DEVICES",),
    device_files="nvidia[0-9]*",
    order=1,
)
