"""Every vendor's GPUs of this node, opened in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from teho.errors import DeviceError
from teho.model.device import DeviceSource

__all__ = ["OPENERS", "open_gpus"]


def _open_nvidia(environment: Mapping[str, str], root: Path) -> DeviceSource:
    from teho.devices.nvidia import NvidiaSource

    return NvidiaSource(environment, root)


def _open_amd(environment: Mapping[str, str], root: Path) -> DeviceSource:
    from teho.devices.amd import AmdSource

    return AmdSource(environment, root)


OPENERS: dict[str, Callable[[Mapping[str, str], Path], DeviceSource]] = {
    "nvidia": _open_nvidia,
    "amd": _open_amd,
}
"""Vendor -> what opens its GPUs, loading no more than that vendor needs."""


def open_gpus(
    environment: Mapping[str, str], root: Path = Path("/")
) -> tuple[list[DeviceSource], list[DeviceError]]:
    """Open all GPUs of the job; if a vendor has none here, return why instead."""
    sources: list[DeviceSource] = []
    refusals: list[DeviceError] = []
    for opener in OPENERS.values():
        try:
            sources.append(opener(environment, root))
        except DeviceError as error:
            refusals.append(error)
    return sources, refusals
