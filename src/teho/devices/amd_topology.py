"""Which AMD GPUs a node has, in ROCm's order, and where sysfs keeps their files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from teho.devices.procfile import read_text
from teho.model.device import Device

__all__ = ["ANSWER_BYTES", "AmdGpu", "amd_cards", "find_amd_gpus", "number_in", "parse_number"]

_AMD = 0x1002
_NAMES = {
    0x738C: "AMD Instinct MI100",
    0x7408: "AMD Instinct MI250X",
    0x740C: "AMD Instinct MI250X",
    0x740F: "AMD Instinct MI210",
    0x74A0: "AMD Instinct MI300A",
    0x74A1: "AMD Instinct MI300X",
}
"""Product names by PCI device id (the public PCI id list), for where the driver gives none."""

_TWO_DIES = frozenset({0x7408, 0x740C})
"""PCI device ids of cards that are two GPUs, one of which reports the power of both."""

_CARD = re.compile(r"card\d+")
_HEXADECIMAL = re.compile(r"(0x)?[0-9a-fA-F]{1,16}")
_PROPERTY = re.compile(r"^(\w+) (\d{1,20})$", re.MULTILINE)

ANSWER_BYTES = 64
"""More than any number takes, so that none is cut short."""
_MOST_DIGITS = 18
"""What surely fits a signed 64-bit column; no true answer comes near it."""


class AmdGpu(NamedTuple):
    """A GPU as it stands in sysfs."""

    device: Device
    directory: str
    """Folder of its PCI device."""
    hwmon: str
    """Folder of its sensors."""
    kfd_id: str
    """Its name in KFD's process list; empty without KFD."""
    two_dies: bool
    """One of two GPUs on a card that reports power once, for both."""


class _Node(NamedTuple):
    """A GPU in KFD's topology."""

    address: str
    """PCI address, as `0000:c1:00.0`."""
    unique_id: int
    kfd_id: str


def find_amd_gpus(top: str, cards: Mapping[str, str]) -> tuple[list[AmdGpu], list[str]]:
    """Return all GPUs that this process may see, in ROCm's order, and notes for the report.

    Args:
        top: the folder that holds `sys`, without a slash at its end.
        cards: what `amd_cards` returns.
    """
    nodes, hidden_count = _kfd_nodes(top)
    notes = []
    if not nodes and not hidden_count and cards:
        nodes = [_Node(address, 0, "") for address in sorted(cards)]
        notes.append(
            "KFD's topology is not there: AMD GPUs are counted in the order of their PCI "
            "addresses, which may not be the order of ROCR_VISIBLE_DEVICES"
        )
    gpus = []
    for index, node in enumerate(nodes):
        directory = cards.get(node.address, f"{top}/sys/bus/pci/devices/{node.address}")
        gpu = _describe(index, node, directory)
        if gpu.device.id == node.address:
            notes.append(
                f"the AMD GPU at {node.address} has no unique id; it goes by its PCI address"
            )
        gpus.append(gpu)
    return gpus, notes


def _describe(index: int, node: _Node, directory: str) -> AmdGpu:
    product = _hexadecimal(f"{directory}/device")
    unique_id = node.unique_id or _hexadecimal(f"{directory}/unique_id")
    # A folder that is not there answers ABSENT for each of its files.
    hwmon = f"{directory}/hwmon/{min(_names(f'{directory}/hwmon'), default='hwmon0')}"
    power_limit_uw = _optional(f"{hwmon}/power1_cap")
    device = Device(
        id=f"GPU-{unique_id:016x}" if unique_id else node.address,
        index=index,
        name=read_text(Path(directory, "product_name"))
        or _NAMES.get(product, f"AMD GPU 0x{product:04x}"),
        vendor="amd",
        memory_bytes=_optional(f"{directory}/mem_info_vram_total") or None,
        pci_bus_id=node.address,
        numa_node=_optional(f"{directory}/numa_node"),
        power_limit_w=power_limit_uw / 1_000_000 if power_limit_uw else None,
    )
    return AmdGpu(device, directory, hwmon, node.kfd_id, product in _TWO_DIES)


def _kfd_nodes(top: str) -> tuple[list[_Node], int]:
    """Return KFD's GPUs in its order, and how many nodes it hides from this process.

    KFD refuses (EPERM) to tell of a GPU that the process's device cgroup forbids
    (kfd_topology.c), and ROCm leaves such a GPU out of its count.
    """
    directory = f"{top}/sys/class/kfd/kfd/topology/nodes"
    nodes = []
    hidden_count = 0
    for name in sorted(filter(str.isdecimal, _names(directory)), key=int):
        try:
            text = Path(directory, name, "properties").read_text("ascii", "replace")
        except OSError as error:
            hidden_count += error.errno in {errno.EPERM, errno.EACCES}
            continue
        properties = {key: int(value) for key, value in _PROPERTY.findall(text)}
        if properties.get("simd_count", 0) == 0:
            continue  # a CPU
        # Bus, device and function as PCI packs them; the bits above tell partitions apart.
        location = properties.get("location_id", 0)
        address = (
            f"{properties.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}"
            f":{location >> 3 & 0x1F:02x}.{location & 0x7}"
        )
        kfd_id = _optional(f"{directory}/{name}/gpu_id")
        nodes.append(_Node(address, properties.get("unique_id", 0), str(kfd_id or "")))
    return nodes, hidden_count


def amd_cards(top: str) -> dict[str, str]:
    """Return the sysfs folder of each AMD card, the job's or not, by PCI address."""
    drm = f"{top}/sys/class/drm"
    directories = [
        os.path.realpath(f"{drm}/{name}/device")
        for name in _names(drm)
        if _CARD.fullmatch(name) and _hexadecimal(f"{drm}/{name}/device/vendor") == _AMD
    ]
    return {directory.rpartition("/")[2]: directory for directory in directories}


def parse_number(answer: bytes) -> int:
    """Return the whole number that a file holds.

    Raises:
        ValueError: it holds anything else, or more digits than a true answer has.
    """
    text = answer.strip()
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        words = text.decode("ascii", "backslashreplace")
        raise ValueError(f"'{words}' is not a number in range")
    return int(text)


def number_in(path: str) -> int:
    """Open, read and close a file that holds one whole number.

    Raises:
        OSError: the kernel refuses.
        ValueError: what it answers is not a number.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return parse_number(os.pread(descriptor, ANSWER_BYTES, 0))
    finally:
        os.close(descriptor)


def _optional(path: str) -> int | None:
    try:
        return number_in(path)
    except (OSError, ValueError):
        return None


def _hexadecimal(path: str) -> int:
    text = read_text(Path(path))
    return int(text, 16) if _HEXADECIMAL.fullmatch(text) else 0


def _names(directory: str) -> list[str]:
    try:
        return [entry.name for entry in Path(directory).iterdir()]
    except OSError:
        return []
