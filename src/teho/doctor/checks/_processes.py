"""How many cores a process of this job has."""

from __future__ import annotations

from teho.doctor.snapshot import Snapshot
from teho.schedulers.registry import scheduler_or_none

__all__ = ["cores_of_process", "promised"]


def promised(snapshot: Snapshot) -> int | None:
    """Return the cores that the job was given on this node; None if that is not known.

    If cores come with the GPUs, as on ARC4, the slots of a request are not the job's cores.
    """
    shares = snapshot.cluster.shares if snapshot.cluster else ()
    has_slots = scheduler_or_none(snapshot.allocation.scheduler).has_slots
    if has_slots and snapshot.expects_gpus and any("cores" in one.automatic for one in shares):
        return None
    return snapshot.allocation.cores_asked


def cores_of_process(snapshot: Snapshot) -> int:
    """Return the cores of each task here: those it may run on, but no more than it was given."""
    bound, asked = len(snapshot.cores), promised(snapshot)
    return bound if asked is None else max(1, min(bound, asked // snapshot.local_size))
