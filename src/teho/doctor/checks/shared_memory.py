"""Is there enough space in /dev/shm, which loader workers need for their batches?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, unknown, warning
from teho.doctor.snapshot import Folder, Snapshot
from teho.model.finding import Threshold
from teho.units import MIB, format_bytes

__all__ = ["ABOUT", "check"]

ABOUT = "space in /dev/shm for loader workers"

_SMALL = Threshold(
    1024,
    "MiB",
    "Teho's own choice: this limit is between Docker's default (64 MiB) and Linux's default "
    "(half of the node's memory)",
)


def check(snapshot: Snapshot) -> Outcome:
    """Find a small or full one. PyTorch's workers then end with a bus error."""
    found = snapshot.folders.get("shared memory")
    if not isinstance(found, Folder):
        return unknown(
            f"the shared memory cannot be checked: {found.detail if found else 'no answer'}"
        )
    if found.free_bytes >= _SMALL.value * MIB:
        return fine(f"{found.path} has {format_bytes(found.free_bytes)} free")
    return warning(
        f"{found.path} has only {format_bytes(found.free_bytes)} free of "
        f"{format_bytes(found.total_bytes)}: loader workers will end with a bus error.",
        "Start the container with more shared memory: `docker run --shm-size=8g`, or `--ipc=host`."
        if found.total_bytes < _SMALL.value * MIB
        else "Delete the files that earlier programs left there: `ls -l /dev/shm` lists them.",
        ("free", found.free_bytes, "bytes"),
        ("size", found.total_bytes, "bytes"),
        thresholds=(_SMALL,),
    )
