"""Functions for variables such as `CUDA_VISIBLE_DEVICES`, shared by the vendors.

Each runtime reads its variable differently. A vendor's `visible.py` reads it like the runtime:
position 0 of the result is the program's first GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from teho.model.device import Device

__all__ = ["Chosen", "Visible", "all_of_job", "device_at", "named_by_prefix", "selected"]

Visible = tuple[tuple[Device, ...], tuple[str, ...]]
"""Devices, and notes for the report."""
Chosen = tuple[list[Device], list[str]]

# Values that schedulers write for "none". They need no note.
_NONE = {"", "-1", "NoDevFiles"}
_SLURM_GPU_LISTS = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL")
_SLURM_GPU_COUNTS = ("SLURM_GPUS", "SLURM_GPUS_ON_NODE")


def all_of_job(environment: Mapping[str, str], devices: Sequence[Device]) -> Chosen:
    """Return the GPUs without a variable: all, or none if the Slurm job has no GPU."""
    in_lists = any(environment.get(name, "") for name in _SLURM_GPU_LISTS)
    counted = any(environment.get(name, "") not in {"", "0"} for name in _SLURM_GPU_COUNTS)
    if "SLURM_JOB_ID" not in environment or in_lists or counted or not devices:
        return list(devices), []
    return [], [f"this Slurm job has no GPU; the {len(devices)} GPUs of the node are not recorded"]


def device_at(devices: Sequence[Device], number: re.Match[str] | None) -> Device | None:
    """Return the device at an index that was found in a text; None if there is no such device."""
    index = int(number[0]) if number else -1
    return devices[index] if 0 <= index < len(devices) else None


def named_by_prefix(entry: str, kind: str, by_name: Mapping[str, Device]) -> Device | None:
    """Return the device with this name, or the only one whose name begins with it."""
    if entry in by_name:
        return by_name[entry]
    if not entry.startswith(kind) or entry == kind:
        return None
    matches = {device for name, device in by_name.items() if name.startswith(entry)}
    return matches.pop() if len(matches) == 1 else None


def selected(
    variable: str,
    text: str,
    reader: str,
    find: Callable[[str], Device | None],
    *,
    most: int | None = None,
    once: bool = False,
) -> Chosen:
    """Return the devices that a variable selects, up to the first entry that selects none.

    Args:
        variable: such as `CUDA_VISIBLE_DEVICES`.
        text: the value of the variable.
        reader: the runtime that reads the variable.
        find: returns the device of an entry.
        most: how many entries the runtime reads; None: all.
        once: whether an entry that occurs again selects no device.
    """
    found: list[Device] = []
    for entry in text.split(",")[:most]:
        device = find(entry)
        if device is not None and not (once and device in found):
            found.append(device)
            continue
        word = entry.strip()
        if text.strip() in _NONE or word.startswith("-"):
            return found, []  # intended
        trouble = (
            f"{word!r} is not a GPU here, or was named before; {reader} ignores this entry and all "
            "later entries"
        )
        return found, [f"{variable}={text}: {trouble}"]
    return found, []
