"""Room in /dev/shm, through which loader workers hand over their batches."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, symptom, unknown
from teho.doctor.snapshot import Folder, Snapshot
from teho.model.finding import Severity, Threshold
from teho.units import format_bytes

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "shared-memory"
ABOUT = "room in /dev/shm for loader workers"
DECISIVE = False

_MIB = 1024**2
_SMALL = Threshold(
    1024, "MiB", "Teho's own choice, between Docker's default of 64 MiB and Linux's half of memory"
)


def check(snapshot: Snapshot) -> Outcome:
    """Look for a small or full one: PyTorch's workers then end with a bus error."""
    found = snapshot.folders.get("shared memory")
    if not isinstance(found, Folder):
        return unknown(f"it cannot be looked at: {found.detail if found else 'no answer'}")
    if found.free_bytes >= _SMALL.value * _MIB:
        return fine(f"{format_bytes(found.free_bytes)} free")
    small = found.total_bytes < _SMALL.value * _MIB
    mine = "Take away what is left of ended programs there: `ls -l /dev/shm`."
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"{found.path} has {format_bytes(found.free_bytes)} free of "
            f"{format_bytes(found.total_bytes)}: loader workers will end with a bus error.",
            "Start the container with more: `docker run --shm-size=8g`, or `--ipc=host`."
            if small
            else mine,
            ("free", found.free_bytes, "bytes"),
            ("in all", found.total_bytes, "bytes"),
            thresholds=(_SMALL,),
        )
    ]
