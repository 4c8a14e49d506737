"""MIG instances are used as they can be: one in each process."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom
from teho.doctor.snapshot import Snapshot
from teho.model.finding import Severity

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "mig"
ABOUT = "MIG: parts of a GPU"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Look for more than one instance in a process.

    By NVIDIA's MIG user guide ("CUDA device enumeration") a program has one instance, whatever
    `CUDA_VISIBLE_DEVICES` lists.
    """
    parts = [device for device in snapshot.gpus if device.parent_id]
    if not parts:
        return moot("no GPU here is divided")
    if len(snapshot.gpus) == 1 or snapshot.local_size > 1:
        return fine(f"one instance, {parts[0].name}")
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"{len(parts)} MIG instances are visible, and a program can use only one of them.",
            "Ask for one instance, or for a whole GPU; else start a process for each, with "
            "`CUDA_VISIBLE_DEVICES` set to its own: "
            f"`CUDA_VISIBLE_DEVICES={parts[0].id} python train.py`.",
            ("instances", ", ".join(device.name for device in parts), ""),
        )
    ]
