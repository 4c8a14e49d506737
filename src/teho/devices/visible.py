"""What the vendors' readings of their variables for visible GPUs have in common.

Each runtime reads its variable in its own way. The `visible.py` of a vendor reads it as the
runtime does, so that position 0 of the result is what the program calls its first GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teho.model.device import Device

__all__ = ["Chosen", "Visible", "all_of_job", "device_at", "named_by_prefix", "unmatched"]

Visible = tuple[tuple[Device, ...], tuple[str, ...]]
"""Devices, and notes for the report."""
Chosen = tuple[list[Device], list[str]]

# What schedulers write where they mean "none": no cause for a note.
_NONE = {"", "-1", "NoDevFiles"}
_SLURM_GPU_LISTS = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL")
_SLURM_GPU_COUNTS = ("SLURM_GPUS", "SLURM_GPUS_ON_NODE")


def all_of_job(environment: Mapping[str, str], devices: Sequence[Device]) -> Chosen:
    """Return what a program sees when no variable says: all, unless its job holds no GPU."""
    in_lists = any(environment.get(name, "") for name in _SLURM_GPU_LISTS)
    counted = any(environment.get(name, "") not in {"", "0"} for name in _SLURM_GPU_COUNTS)
    if "SLURM_JOB_ID" not in environment or in_lists or counted or not devices:
        return list(devices), []
    return [], [f"this Slurm job holds no GPU; the {len(devices)} of the node are not recorded"]


def device_at(devices: Sequence[Device], index: int) -> Device | None:
    """Return the device at this place; None if there is none."""
    return devices[index] if 0 <= index < len(devices) else None


def named_by_prefix(entry: str, kind: str, by_name: Mapping[str, Device]) -> Device | None:
    """Return the device that is so called, or the only one whose name begins so."""
    if entry in by_name:
        return by_name[entry]
    if not entry.startswith(kind) or entry == kind:
        return None
    matches = {device for name, device in by_name.items() if name.startswith(entry)}
    return matches.pop() if len(matches) == 1 else None


def unmatched(variable: str, text: str, entry: str, reader: str) -> list[str]:
    """Return a note about an entry of a variable that selects no GPU.

    Args:
        variable: such as `CUDA_VISIBLE_DEVICES`.
        text: its value.
        entry: the part of it.
        reader: the runtime that reads it.
    """
    if text.strip() in _NONE or entry.strip().startswith("-"):
        return []  # said on purpose
    trouble = f"{entry.strip()!r} names no GPU here, or one named before; {reader} reads no further"
    return [f"{variable}={text}: {trouble}"]
