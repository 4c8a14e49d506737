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
    # The driver counts by PCI address; without this setting, CUDA counts by speed.
    index_order="CUDA_DEVICE_ORDER=PCI_BUS_ID",
    cache_variables=("CUDA_CACHE_PATH",),
    # The data of "Part-time Power Measurements" for Pascal, Volta, GA100 and GH100 (instant), by
    # the CUDA compute capability.
    power_windows_s=(("6.", 0.01), ("7.0", 0.01), ("8.0", 0.025), ("9.", 0.025)),
    # On a GH200 the counter covers the module, the power only the GPU.
    is_power_of_module=False,
    order=1,
)
