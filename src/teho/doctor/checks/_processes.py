"""How many cores a process of this job may count as its own."""

from __future__ import annotations

from teho.doctor.snapshot import Snapshot
from teho.model.cluster import Share
from teho.schedulers.registry import scheduler_or_none

__all__ = ["cores_of_process", "promised"]


def promised(snapshot: Snapshot) -> int | None:
    """Return the cores that the job was promised on this node; None if nobody tells.

    If cores come with the GPUs, as on ARC4, the slots of a request are not the job's cores.
    """
    asked = snapshot.allocation.cores_asked
    comes_by_itself = any("cores" in share.automatic for share in _shares(snapshot))
    has_slots = scheduler_or_none(snapshot.allocation.scheduler).has_slots
    if has_slots and comes_by_itself and snapshot.expects_gpus:
        return None
    return asked


def cores_of_process(snapshot: Snapshot) -> int:
    """Return the cores that each of the tasks here has: its affinity, and no more than promised."""
    bound = len(snapshot.cores)
    asked = promised(snapshot)
    if asked is None:
        return bound
    return max(1, min(bound, asked // snapshot.local_size))


def _shares(snapshot: Snapshot) -> tuple[Share, ...]:
    return snapshot.cluster.shares if snapshot.cluster else ()
