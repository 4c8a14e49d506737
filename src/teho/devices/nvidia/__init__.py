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
    # CUDA counts the fastest GPU first by default.
    index_order="CUDA_DEVICE_ORDER=PCI_BUS_ID",
    cache_variables=("CUDA_CACHE_PATH",),
    # Data of "Part-time Power Measurements" for Pascal, Volta, GA100 and GH100 (instant).
    power_windows_s=(("6.", 0.01), ("7.0", 0.01), ("8.0", 0.025), ("9.", 0.025)),
    order=1,
)
