"""The AMD GPUs of a node, in ROCm's order, and their folders in sysfs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from teho.devices.amd.files import hexadecimal_in, properties_in
from teho.devices.procfile import names_in, optional_number, read_text
from teho.model.device import Device, DeviceFact
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["AmdGpu", "all_gpus", "amd_cards", "find_amd_gpus", "versions"]

_AMD = 0x1002
_PRODUCTS = {
    0x738C: ("AMD Instinct MI100", "gfx908"),
    0x7408: ("AMD Instinct MI250X", "gfx90a"),
    0x740C: ("AMD Instinct MI250X", "gfx90a"),
    0x740F: ("AMD Instinct MI210", "gfx90a"),
    0x74A0: ("AMD Instinct MI300A", "gfx942"),
    0x74A1: ("AMD Instinct MI300X", "gfx942"),
}
"""Name and instruction set by PCI device id, used if the driver does not report them. Sources: the
public PCI id list; AMD's table of GPUs in the ROCm documentation."""

_TWO_DIES = frozenset({0x7408, 0x740C})
"""PCI device ids of cards that are two GPUs, one of which reports the power of both."""
_WITH_CPU = frozenset({0x74A0})
"""PCI device ids of packages whose power and energy include their CPU cores
(`SocketPower` and `SocketEnergyAcc` in amdgpu's smu_v13_0_6_pmfw.h)."""

_CARD = lazy_pattern(r"card\d+")
_DRIVER, _ROCM = "sys/module/amdgpu/version", "opt/rocm/.info/version"
_NO_COMPUTE_MODE = Missing(Reason.UNSUPPORTED, "AMD GPUs have no compute mode")


class KfdNode(NamedTuple):
    """A GPU in KFD's topology; without KFD, only its address is known."""

    address: str
    """PCI address such as `0000:c1:00.0`."""
    directory: str = ""
    unique_id: int = 0
    kfd_id: str = ""
    """Id in KFD's process list."""
    compute_units: int = 0
    """Number that the program may use; 0 if not known."""
    architecture: str = ""


class AmdGpu(NamedTuple):
    """A GPU in sysfs."""

    device: Device
    node: KfdNode
    directory: str
    """Folder of its PCI device."""
    hwmon: str
    """Folder of its sensors."""
    two_dies: bool
    """Whether it is one of two GPUs on a card that reports power once for both."""


def all_gpus(root: Path) -> list[Device]:
    """Return all AMD GPUs that this process may see, including other jobs' GPUs."""
    top = str(root).rstrip("/")
    return [gpu.device for gpu in find_amd_gpus(top, amd_cards(top))[0]]


def versions(root: Path) -> Iterable[tuple[str, str]]:
    """Return the versions of the driver and of ROCm."""
    return {
        # A driver that came with the kernel has no version of its own.
        "amdgpu": read_text(root / _DRIVER),
        "ROCm": read_text(root / _ROCM),
    }.items()


def find_amd_gpus(top: str, cards: Mapping[str, str]) -> tuple[list[AmdGpu], list[str]]:
    """Return all GPUs that this process may see, in ROCm's order, and notes for the report.

    Args:
        top: the folder that contains `sys`, without a slash at its end.
        cards: the result of `amd_cards`.
    """
    nodes, hidden_count = _kfd_nodes(top)
    notes = []
    if not nodes and not hidden_count and cards:
        nodes = [KfdNode(address) for address in sorted(cards)]
        notes.append(
            "KFD's topology is missing: AMD GPUs are numbered in the order of their PCI "
            "addresses, which may differ from the order in ROCR_VISIBLE_DEVICES"
        )
    gpus = []
    driver, rocm = _driver(top), _rocm(top)
    for index, node in enumerate(nodes):
        directory = cards.get(node.address, f"{top}/sys/bus/pci/devices/{node.address}")
        gpu = _describe(index, node, directory, driver, rocm)
        if gpu.device.id == node.address:
            notes.append(
                f"the AMD GPU at {node.address} has no unique id; Teho uses its PCI address as "
                "the id"
            )
        gpus.append(gpu)
    return gpus, notes


def _driver(top: str) -> DeviceFact:
    text = read_text(Path(f"{top}/{_DRIVER}"))
    return text or Missing(
        Reason.ABSENT, "amdgpu is a part of this kernel, and has no version of its own"
    )


def _rocm(top: str) -> DeviceFact:
    text = read_text(Path(f"{top}/{_ROCM}"))
    return f"ROCm {text}" if text else Missing(Reason.ABSENT, f"there is no file /{_ROCM}")


def _describe(
    index: int, node: KfdNode, directory: str, driver: DeviceFact, rocm: DeviceFact
) -> AmdGpu:
    product = hexadecimal_in(f"{directory}/device")
    name, architecture = _PRODUCTS.get(product, (f"AMD GPU 0x{product:04x}", ""))
    unique_id = node.unique_id or hexadecimal_in(f"{directory}/unique_id")
    # If the folder does not exist, its files are absent.
    hwmon = f"{directory}/hwmon/{min(names_in(f'{directory}/hwmon'), default='hwmon0')}"
    power_limit_uw = optional_number(f"{hwmon}/power1_cap")
    default_uw = optional_number(f"{hwmon}/power1_cap_default")
    device = Device(
        id=f"GPU-{unique_id:016x}" if unique_id else node.address,
        index=index,
        name=read_text(Path(directory, "product_name")) or name,
        vendor="amd",
        memory_bytes=optional_number(f"{directory}/mem_info_vram_total") or None,
        pci_bus_id=node.address,
        numa_node=optional_number(f"{directory}/numa_node"),
        power_limit_w=power_limit_uw / 1_000_000 if power_limit_uw else None,
        power_default_w=default_uw / 1_000_000 if default_uw else None,
        architecture=node.architecture or architecture,
        energy_of="module" if product in _WITH_CPU else "device",
        driver=driver,
        platform=rocm,
        compute_mode=_NO_COMPUTE_MODE,
    )
    return AmdGpu(device, node, directory, hwmon, two_dies=product in _TWO_DIES)


def _kfd_nodes(top: str) -> tuple[list[KfdNode], int]:
    """Return KFD's GPUs in its order, and the number of nodes that it hides from this process.

    KFD refuses (EPERM) to show a GPU that the process's device cgroup forbids (kfd_topology.c).
    ROCm does not count this GPU.
    """
    directory = f"{top}/sys/class/kfd/kfd/topology/nodes"
    nodes = []
    hidden_count = 0
    for name in sorted(filter(str.isdecimal, names_in(directory)), key=int):
        folder = f"{directory}/{name}"
        try:
            properties = properties_in(f"{folder}/properties")
        except OSError as error:
            hidden_count += error.errno in {errno.EPERM, errno.EACCES}
            continue
        simd_count = properties.get("simd_count", 0)
        if simd_count == 0:
            continue  # a CPU
        simd_per_cu = properties.get("simd_per_cu", 0)
        nodes.append(
            KfdNode(
                address=_address(properties),
                directory=folder,
                unique_id=properties.get("unique_id", 0),
                kfd_id=str(optional_number(f"{folder}/gpu_id") or ""),
                compute_units=simd_count // simd_per_cu if simd_per_cu else 0,
                architecture=_architecture(properties.get("gfx_target_version", 0)),
            )
        )
    return nodes, hidden_count


def _address(properties: Mapping[str, int]) -> str:
    # Bus, device and function, packed as in PCI. The higher bits are the partition.
    location = properties.get("location_id", 0)
    return (
        f"{properties.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}"
        f":{location >> 3 & 0x1F:02x}.{location & 0x7}"
    )


def _architecture(version: int) -> str:
    """Return the name of an instruction set: 90010 is version 9.0.10, so `gfx90a`."""
    major, rest = divmod(version, 10_000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor:x}{stepping:x}" if version else ""


def amd_cards(top: str) -> dict[str, str]:
    """Return the sysfs folders of all AMD cards, also other jobs', by PCI address."""
    drm = f"{top}/sys/class/drm"
    directories = [
        os.path.realpath(f"{drm}/{name}/device")
        for name in names_in(drm)
        if _CARD.fullmatch(name) and hexadecimal_in(f"{drm}/{name}/device/vendor") == _AMD
    ]
    return {directory.rpartition("/")[2]: directory for directory in directories}
