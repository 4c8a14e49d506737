"""Functions for variables such as `CUDA_VISIBLE_DEVICES`, shared by the vendors.

Each runtime reads its variable differently. A vendor's `visible.py` reads it like the runtime:
position 0 of the result is the program's first GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teho.model.device import Device

__all__ = ["Chosen", "Visible", "all_of_job", "device_at", "named_by_prefix", "unmatched"]

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


def device_at(devices: Sequence[Device], index: int) -> Device | None:
    """Return the device at this index; None if the index is out of range."""
    return devices[index] if 0 <= index < len(devices) else None


def named_by_prefix(entry: str, kind: str, by_name: Mapping[str, Device]) -> Device | None:
    """Return the device with this name, or the only one whose name begins with it."""
    if entry in by_name:
        return by_name[entry]
    if not entry.startswith(kind) or entry == kind:
        return None
    matches = {device for name, device in by_name.items() if name.startswith(entry)}
    return matches.pop() if len(matches) == 1 else None


def unmatched(variable: str, text: str, entry: str, reader: str) -> list[str]:
    """Return a note about an entry that selects no GPU.

    Args:
        variable: such as `CUDA_VISIBLE_DEVICES`.
        text: the value of the variable.
        entry: the entry in it.
        reader: the runtime that reads the variable.
    """
    if text.strip() in _NONE or entry.strip().startswith("-"):
        return []  # intended
    trouble = f"{entry.strip()!r} is not a GPU here, or was named before; {reader} ignores the rest"
    return [f"{variable}={text}: {trouble}"]
