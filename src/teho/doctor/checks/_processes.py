"""How many cores a process of this job has."""

from __future__ import annotations

from teho.doctor.snapshot import Snapshot
from teho.schedulers.registry import scheduler_or_none
from teho.schedulers.script.launch_site import launch_site
from teho.schedulers.site import with_gpus

__all__ = ["cores_of_process", "promised"]


def promised(snapshot: Snapshot) -> int | None:
    """Return the cores that the job was given on this node; None if that is not known.

    If cores come with the GPUs, as on ARC4, the slots of a request are not the job's cores.
    """
    given, cluster = snapshot.allocation, snapshot.cluster
    has_slots = scheduler_or_none(given.scheduler).has_slots
    if not (cluster and has_slots and snapshot.expects_gpus):
        return given.cores_asked
    if not any("cores" in share.automatic for share in cluster.shares):
        return given.cores_asked
    site = launch_site(cluster)
    if not (site["cores_with_gpu"] and given.gpus_held):
        return None
    return with_gpus(site, given.gpus_held, given.cores_asked)


def cores_of_process(snapshot: Snapshot) -> int:
    """Return the cores of each task here: those it may run on, but no more than it was given."""
    bound, requested = len(snapshot.cores), promised(snapshot)
    return bound if requested is None else max(1, min(bound, requested // snapshot.local_size))
