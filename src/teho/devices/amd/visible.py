"""The AMD GPUs that a program sees, depending on its environment.

Sources: ROCR-Runtime, `amd_filter_device.cpp`; ROCm CLR, `rocdevice.cpp` and `flags.cpp`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from teho.devices.visible import (
    Chosen,
    Visible,
    all_of_job,
    device_at,
    named_by_prefix,
    unmatched,
)
from teho.model.device import Device

__all__ = ["visible_rocm"]

_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


def visible_rocm(environment: Mapping[str, str], devices: Sequence[Device]) -> Visible:
    """Return the AMD devices that HIP shows to the program, and notes for the report.

    `ROCR_VISIBLE_DEVICES` is applied first. `HIP_VISIBLE_DEVICES`, or else `CUDA_VISIBLE_DEVICES`,
    then selects among the remaining GPUs.

    Args:
        environment: the program's environment.
        devices: GPUs in the order of KFD's topology; ids are `GPU-<unique id>` if known.
    """
    runtime = environment.get("ROCR_VISIBLE_DEVICES")
    names = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    # An empty variable counts: then HIP shows no GPU, whatever the other variable is.
    hip = next((name for name in names if name in environment), None)
    if runtime is None and hip is None:
        left, notes = all_of_job(environment, devices)
    else:
        left, notes = list(devices), []
    if runtime is not None:
        left, notes = _rocr(runtime, devices)
    if hip is not None:
        left, more = _hip(hip, environment[hip], left)
        notes += more
    return tuple(left), tuple(notes)


def _rocr(text: str, devices: Sequence[Device]) -> Chosen:
    by_name = {device.id.upper(): device for device in devices}
    found: list[Device] = []
    # ROCr reads as many entries as the node has GPUs.
    for entry in text.split(",")[: len(devices)]:
        token = entry.strip().upper()
        if token.startswith("G"):
            device = named_by_prefix(token, "GPU-", by_name)
        else:
            device = device_at(devices, int(token) if _NUMBER.fullmatch(token) else -1)
        if device is None or device in found:
            return found, unmatched("ROCR_VISIBLE_DEVICES", text, entry, "ROCr")
        found.append(device)
    return found, []


def _hip(name: str, text: str, devices: Sequence[Device]) -> Chosen:
    by_name = {device.id: device for device in devices}
    found: list[Device] = []
    for entry in text.split(","):
        if entry.startswith("GPU-"):
            device = by_name.get(entry)
        else:
            # HIP accepts only plain decimals: " 1" and "01" end the list.
            plain = _PLAIN_NUMBER.fullmatch(entry)
            device = device_at(devices, int(entry) if plain else -1)
        if device is None:
            return found, unmatched(name, text, entry, "HIP")
        if device not in found:
            found.append(device)
    return found, []
