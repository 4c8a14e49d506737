"""AMD's GPUs, through the files of the kernel's driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from teho.devices.vendor import EnergyCounters, Vendor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from teho.model.device import Device, DeviceSource

__all__ = ["VENDOR"]


def _open_source(environment: Mapping[str, str], root: Path) -> DeviceSource:
    from teho.devices.amd.source import AmdSource

    return AmdSource(environment, root)


def _open_counters(environment: Mapping[str, str], root: Path) -> EnergyCounters:
    from teho.devices.amd.energy import AmdEnergy

    return AmdEnergy(environment, root)


def _all_gpus(root: Path) -> Iterable[Device]:
    from teho.devices.amd.topology import amd_cards, find_amd_gpus

    top = str(root).rstrip("/")
    return [gpu.device for gpu in find_amd_gpus(top, amd_cards(top))[0]]


def _versions(root: Path) -> Iterable[tuple[str, str]]:
    from teho.devices.procfile import read_text

    # A driver that came with the kernel has no version of its own.
    yield "amdgpu", read_text(root / "sys/module/amdgpu/version")
    yield "ROCm", read_text(root / "opt/rocm/.info/version")


VENDOR = Vendor(
    name="amd",
    open_source=_open_source,
    open_counters=_open_counters,
    all_gpus=_all_gpus,
    versions=_versions,
    # HIP counts within what ROCr leaves, by either of the other two.
    visible_variables=("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    device_files="kfd",
    short_counters=frozenset({"gfx908"}),
    order=2,
)
