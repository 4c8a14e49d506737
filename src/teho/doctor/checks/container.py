"""A container has been given the GPUs of its node."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom
from teho.doctor.snapshot import Snapshot
from teho.model.finding import Severity

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "container"
ABOUT = "whether a container lets its programs at the GPUs"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Look for a node with GPUs whose driver's libraries are not inside of the container."""
    kind = snapshot.survey.system.get("container", "none")
    if kind in {"none", "not known"} or kind.startswith("of unknown kind"):
        return moot("this is not a container that Teho knows")
    if snapshot.gpus:
        return fine(f"{kind}, with the GPUs")
    if not snapshot.gpu_files and not snapshot.allocation.gpus_held:
        return moot(f"{kind}, where no GPU is")
    amd = "/dev/kfd" in snapshot.gpu_files
    option = "--rocm" if amd else "--nv"
    device = "--device nvidia.com/gpu=all" if not amd else "--device /dev/kfd --device /dev/dri"
    how = f"`{option}`" if kind in {"Apptainer", "Singularity"} else f"`{device}`"
    return [
        symptom(
            ID,
            Severity.CRITICAL,
            f"The node has GPUs, and this {kind} container cannot use them.",
            f"Start it with {how}.",
            ("device files", " ".join(snapshot.gpu_files) or "none in the container", ""),
            dooms=bool(snapshot.allocation.gpus_held),
        )
    ]
