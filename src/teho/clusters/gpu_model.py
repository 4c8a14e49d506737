"""Compare a GPU that a driver reports with the GPUs of the catalogue."""

from __future__ import annotations

import re

from teho.model.cluster import Gpu
from teho.model.device import Device
from teho.patterns import lazy_pattern
from teho.units import GIB

__all__ = ["is_same_model"]

_PROFILE = lazy_pattern(r"\d+g\.\d+gb")
"""Size of a MIG slice, such as `1g.5gb`."""
_MEMORY_TOLERANCE = 1 / 8
"""Drivers report up to a tenth less memory than the maker: error correction needs a part."""


def is_same_model(gpu: Gpu, device: Device) -> bool:
    """Return whether a device can be a GPU of this kind, by its name and its memory."""
    if gpu.vendor != device.vendor:
        return False
    name = device.name.lower()
    chip = _chip(gpu.model) or _chip(gpu.type)
    if chip not in re.split(r"[^a-z0-9]+", name):
        return False
    profile = _PROFILE.search(f"{gpu.type} {gpu.model}".lower())
    is_slice = bool(profile or gpu.part_of)
    if is_slice != (device.parent_id is not None) and not gpu.may_be_slice:
        return False
    seen = _PROFILE.search(name)
    if profile and seen and profile[0] != seen[0]:
        return False
    if gpu.memory_gib is None or device.memory_bytes is None:
        return True
    return abs(device.memory_bytes / GIB / gpu.memory_gib - 1) <= _MEMORY_TOLERANCE


def _chip(model: str) -> str:
    """Return the name of the chip in a product name, such as `a100` or `3090`."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    named = (word for word in words if re.fullmatch(r"[a-z]+\d+[a-z]*", word))
    return next(named, next((word for word in words if re.match(r"\d{3}", word)), ""))
