"""Does each process use at most one MIG instance?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, warning
from teho.doctor.snapshot import Snapshot

__all__ = ["ABOUT", "check"]

ABOUT = "MIG: slices of a GPU"


def check(snapshot: Snapshot) -> Outcome:
    """Find more than one instance in a process.

    By NVIDIA's MIG user guide ("CUDA device enumeration"), a program uses one instance, whatever
    `CUDA_VISIBLE_DEVICES` lists.
    """
    parts = [device for device in snapshot.gpus if device.parent_id]
    if not parts:
        return not_applicable("no GPU here is divided into MIG instances")
    if len(snapshot.gpus) == 1 or snapshot.local_size > 1:
        return fine(f"one instance, {parts[0].name}")
    return warning(
        f"{len(parts)} MIG instances are visible, but a program can use only one of them.",
        "Request one instance or a whole GPU, or start one process for each instance: "
        f"`CUDA_VISIBLE_DEVICES={parts[0].id} python train.py`.",
        ("instances", ", ".join(device.name for device in parts), ""),
    )
