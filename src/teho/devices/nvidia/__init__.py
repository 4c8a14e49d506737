"""NVIDIA's GPUs, through the driver's library NVML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from teho.devices.vendor import EnergyCounters, Vendor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from teho.model.device import Device, DeviceSource

__all__ = ["VENDOR"]


def _open_source(environment: Mapping[str, str], root: Path) -> DeviceSource:
    from teho.devices.nvidia.source import NvidiaSource

    return NvidiaSource(environment, root)


def _open_counters(environment: Mapping[str, str], root: Path) -> EnergyCounters:
    from teho.devices.nvidia.energy import NvidiaEnergy

    return NvidiaEnergy(environment, root)


def _all_gpus(root: Path) -> Iterable[Device]:
    from teho.devices.nvidia.inventory import all_gpus

    return all_gpus(root)


def _versions(root: Path) -> Iterable[tuple[str, str]]:
    from teho.devices.nvidia.inventory import versions

    return versions(root)


VENDOR = Vendor(
    name="nvidia",
    open_source=_open_source,
    open_counters=_open_counters,
    all_gpus=_all_gpus,
    versions=_versions,
    visible_variables=("CUDA_VISIBLE_DEVICES",),
    device_files="nvidia[0-9]*",
    # The driver counts by PCI address; without this setting, CUDA counts by speed.
    index_order="CUDA_DEVICE_ORDER=PCI_BUS_ID",
    # The data of "Part-time Power Measurements" for Pascal, Volta, GA100 and GH100 (instant), by
    # the CUDA compute capability.
    power_windows_s=(("6.", 0.01), ("7.0", 0.01), ("8.0", 0.025), ("9.", 0.025)),
    # On a GH200 the counter covers the module, the power only the GPU.
    is_power_of_module=False,
    order=1,
)
