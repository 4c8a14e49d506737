"""Which two AMD GPUs are the dies of one card, and which of them reports for both.

An MI250 or MI250X is two GPUs. Power and energy are known to its first die alone, and there for
both (`aldebaran_is_primary` in aldebaran_ppt.c); the other die reads 0. Neither order nor parity
tells which two belong together: the order of ROCm need not be that of the bus.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

import msgspec

from teho.devices.amd.files import hexadecimal_in, names_in, optional_number, properties_in
from teho.devices.amd.metrics import MetricsFile
from teho.devices.amd.topology import AmdGpu
from teho.model.missing import Missing, Reason

__all__ = ["HIDDEN", "SILENT_DIE", "pair_dies"]

SILENT_DIE = Missing(
    Reason.UNSUPPORTED,
    "this die reports no power and no energy: its card's other die reports for both",
)
_BETWEEN_CARDS_MBPS = 100_000
"""The most that KFD knows between cards, 2 links; within a card there are 4. It reckons 50 GB/s
for each (`amdgpu_amdkfd_get_xgmi_bandwidth_mbytes`; the links are those of AMD's MI250X node)."""
HIDDEN = "hidden"
"""Stands for the address of a die that belongs to another job."""


def pair_dies(
    gpus: Sequence[AmdGpu], cards: Mapping[str, str]
) -> tuple[list[AmdGpu], dict[str, str], list[str]]:
    """Say on each device what it shares with another.

    Args:
        gpus: all that this process may see.
        cards: folder of every card of the node by PCI address, other jobs' too.

    Returns:
        The same GPUs; the address of each die's partner; notes for the report.
    """
    dies = [gpu for gpu in gpus if gpu.two_dies]
    partners, notes = _by_links(dies), []
    if len(partners) < len(dies):
        partners = _by_bus(dies, cards)
        notes.append(
            "KFD's topology does not say which AMD GPUs (dies) share a card; those whose PCI "
            "addresses are neighbours are taken for such"
        )
    reporting = {gpu.address for gpu in dies if _reports(gpu)}
    paired = [_in_its_package(gpu, partners.get(gpu.address, ""), reporting) for gpu in gpus]
    return paired, partners, notes


def _in_its_package(gpu: AmdGpu, partner: str, reporting: set[str]) -> AmdGpu:
    if not partner or {gpu.address, partner} <= reporting:
        return gpu  # both report: each for itself
    package = min(address for address in (gpu.address, partner) if address != HIDDEN)
    device = msgspec.structs.replace(
        gpu.device,
        package_id=package,
        energy_of="package" if gpu.address in reporting else "device",
    )
    return gpu._replace(device=device)


def _by_links(dies: Sequence[AmdGpu]) -> dict[str, str]:
    """Pair dies by KFD's links: the one within a card carries the most."""
    address_of = {os.path.basename(gpu.node): gpu.address for gpu in dies if gpu.node}  # noqa: PTH119
    nearest = {
        os.path.basename(gpu.node): _nearest(gpu.node, address_of)  # noqa: PTH119
        for gpu in dies
        if gpu.node
    }
    partners = {}
    for node, address in address_of.items():
        other = nearest[node]
        # A die of another job cannot be asked what is nearest to it.
        if other and nearest.get(other, node) == node:
            partners[address] = address_of.get(other, HIDDEN)
    return partners


def _nearest(node: str, address_of: Mapping[str, str]) -> str:
    """Return the node at the other end of a link that only the dies of one card have; or empty."""
    bandwidths: dict[str, int] = {}
    for link in names_in(f"{node}/io_links"):
        try:
            properties = properties_in(f"{node}/io_links/{link}/properties")
        except OSError:
            continue
        other = str(properties.get("node_to", ""))
        if other in address_of or _is_hidden(f"{os.path.dirname(node)}/{other}"):  # noqa: PTH120
            bandwidths[other] = properties.get("max_bandwidth", 0)
    if not bandwidths:
        return ""
    best = max(bandwidths, key=lambda other: bandwidths[other])
    return best if bandwidths[best] > _BETWEEN_CARDS_MBPS else ""


def _is_hidden(node: str) -> bool:
    try:
        properties_in(f"{node}/properties")
    except OSError as error:
        return error.errno in {errno.EPERM, errno.EACCES}
    return False


def _by_bus(dies: Sequence[AmdGpu], cards: Mapping[str, str]) -> dict[str, str]:
    """Pair neighbours on the bus, among all dies of the node."""
    seen = {gpu.address for gpu in dies}
    same = {hexadecimal_in(f"{gpu.directory}/device") for gpu in dies}
    addresses = sorted(
        seen | {at for at, folder in cards.items() if hexadecimal_in(f"{folder}/device") in same}
    )
    partners = {}
    for first, second in zip(addresses[::2], addresses[1::2], strict=False):
        partners[first], partners[second] = second, first
    return {
        address: partner if partner in seen else HIDDEN
        for address, partner in partners.items()
        if address in seen
    }


def _reports(gpu: AmdGpu) -> bool:
    """Return whether a die knows its card's power or energy."""
    if optional_number(f"{gpu.hwmon}/power1_average"):
        return True
    file = MetricsFile(f"{gpu.directory}/gpu_metrics")
    try:
        table = file.read()
    finally:
        file.close()
    return not isinstance(table, Missing) and table.get("energy", 0) > 0
