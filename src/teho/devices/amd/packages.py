"""Pairs of AMD GPUs (dies) on one card, and the die that reports power and energy for both.

An MI250 or MI250X is two GPUs. Only its first die reports power and energy, for both dies
(`aldebaran_is_primary` in aldebaran_ppt.c). The other die reports 0. The order of the GPUs does not
show the pairs, because ROCm's order may differ from the order of the bus.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

import msgspec

from teho.devices.amd.files import hexadecimal_in, properties_in
from teho.devices.amd.metrics import MetricsFile
from teho.devices.amd.topology import AmdGpu
from teho.devices.procfile import names_in, optional_number
from teho.model.missing import Missing, Reason

__all__ = ["HIDDEN", "SILENT_DIE", "pair_dies"]

SILENT_DIE = Missing(
    Reason.UNSUPPORTED,
    "the other die of this card reports power and energy for both dies",
)
_BETWEEN_CARDS_MBPS = 100_000
"""Largest bandwidth between two cards: 2 links. A card has 4 links between its dies. KFD assumes
50 GB/s for each (`amdgpu_amdkfd_get_xgmi_bandwidth_mbytes`; links as in AMD's MI250X node)."""
HIDDEN = "hidden"
"""Replaces the address of a die of another job."""


def pair_dies(
    gpus: Sequence[AmdGpu], cards: Mapping[str, str]
) -> tuple[list[AmdGpu], dict[str, str], list[str]]:
    """Find the two dies of each card, and set `package_id` and `energy_of` of their devices.

    Args:
        gpus: all GPUs that this process may see.
        cards: folders of all cards of the node, including other jobs' cards, by PCI address.

    Returns:
        The GPUs; the address of each die's partner; notes for the report.
    """
    dies = [gpu for gpu in gpus if gpu.two_dies]
    partners, notes = _by_links(dies), []
    if len(partners) < len(dies):
        partners = _by_bus(dies, cards)
        notes.append(
            "KFD's topology does not show which AMD GPUs (dies) share a card; Teho assumes that "
            "GPUs with neighbouring PCI addresses share a card"
        )
    reporting = {gpu.node.address for gpu in dies if _reports(gpu)}
    paired = [_in_its_package(gpu, partners.get(gpu.node.address, ""), reporting) for gpu in gpus]
    return paired, partners, notes


def _in_its_package(gpu: AmdGpu, partner: str, reporting: set[str]) -> AmdGpu:
    if not partner or {gpu.node.address, partner} <= reporting:
        return gpu  # each reports its own
    package = min(address for address in (gpu.node.address, partner) if address != HIDDEN)
    device = msgspec.structs.replace(
        gpu.device,
        package_id=package,
        energy_of="package" if gpu.node.address in reporting else "device",
    )
    return gpu._replace(device=device)


def _by_links(dies: Sequence[AmdGpu]) -> dict[str, str]:
    """Pair dies by KFD's links: the link within a card has the largest bandwidth."""
    folders = {gpu.node.address: gpu.node.directory for gpu in dies if gpu.node.directory}
    address_of = {os.path.basename(folder): address for address, folder in folders.items()}  # noqa: PTH119
    nearest = {node: _nearest(folders[address], address_of) for node, address in address_of.items()}
    partners = {}
    for node, address in address_of.items():
        other = nearest[node]
        # The links of another job's die cannot be read.
        if other and nearest.get(other, node) == node:
            partners[address] = address_of.get(other, HIDDEN)
    return partners


def _nearest(node: str, address_of: Mapping[str, str]) -> str:
    """Return the node of the other die on the card, by its links; empty if not found."""
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
    """Pair all dies of the node by the order of their PCI addresses."""
    seen = {gpu.node.address for gpu in dies}
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
    """Return whether a die reports its card's power or energy."""
    if optional_number(f"{gpu.hwmon}/power1_average"):
        return True
    file = MetricsFile(f"{gpu.directory}/gpu_metrics")
    try:
        table = file.read()
    finally:
        file.close()
    return not isinstance(table, Missing) and table.get("energy", 0) > 0
