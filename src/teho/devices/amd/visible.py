"""The AMD GPUs that a program sees, depending on its environment.

Sources: ROCR-Runtime, `amd_filter_device.cpp`; ROCm CLR, `rocdevice.cpp` and `flags.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from teho.devices.visible import Visible, all_of_job, device_at, named_by_prefix, selected
from teho.model.device import Device
from teho.patterns import lazy_pattern

__all__ = ["visible_rocm"]

_NUMBER = lazy_pattern(r"[+-]?[0-9]{1,9}")
_PLAIN_NUMBER = lazy_pattern(r"0|[1-9][0-9]{0,8}")


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
    left, notes = list(devices), list[str]()
    if runtime is None and hip is None:
        left, notes = all_of_job(environment, devices)
    if runtime is not None:
        find = partial(_rocr_device, left, {device.id.upper(): device for device in left})
        # ROCr reads as many entries as the node has GPUs.
        left, notes = selected(
            "ROCR_VISIBLE_DEVICES", runtime, "ROCr", find, most=len(left), once=True
        )
    if hip is not None:
        find = partial(_hip_device, left, {device.id: device for device in left})
        left, more = selected(hip, environment[hip], "HIP", find)
        left, notes = list(dict.fromkeys(left)), [*notes, *more]
    return tuple(left), tuple(notes)


def _rocr_device(
    devices: Sequence[Device], by_name: Mapping[str, Device], entry: str
) -> Device | None:
    token = entry.strip().upper()
    if token.startswith("G"):
        return named_by_prefix(token, "GPU-", by_name)
    return device_at(devices, _NUMBER.fullmatch(token))


def _hip_device(
    devices: Sequence[Device], by_name: Mapping[str, Device], entry: str
) -> Device | None:
    if entry.startswith("GPU-"):
        return by_name.get(entry)
    # HIP accepts only plain decimals: " 1" and "01" end the list.
    return device_at(devices, _PLAIN_NUMBER.fullmatch(entry))
