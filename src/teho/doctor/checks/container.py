"""Can a container use the GPUs of its node?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, critical, fine, not_applicable
from teho.doctor.snapshot import Snapshot

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "whether the programs of a container can use the GPUs"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Find a node with GPUs whose driver libraries are missing in the container."""
    kind = snapshot.survey.system.get("container", "none")
    if kind in {"none", "not known"} or kind.startswith("of unknown kind"):
        return not_applicable("Teho found no container that it knows")
    if snapshot.gpus:
        return fine(f"this {kind} container can use the GPUs")
    if not snapshot.gpu_files and not snapshot.allocation.gpus_held:
        return not_applicable(f"this {kind} container is on a node without GPUs")
    is_amd = "/dev/kfd" in snapshot.gpu_files
    if kind in {"Apptainer", "Singularity"}:
        option = "--rocm" if is_amd else "--nv"
    else:
        option = "--device /dev/kfd --device /dev/dri" if is_amd else "--device nvidia.com/gpu=all"
    return critical(
        f"The node has GPUs, but this {kind} container cannot use them.",
        f"Start the container with `{option}`.",
        ("device files", " ".join(snapshot.gpu_files) or "none in the container", ""),
        is_fatal=bool(snapshot.allocation.gpus_held),
    )
