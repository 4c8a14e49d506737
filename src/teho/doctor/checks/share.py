"""Cores and memory for each GPU, against the site's fair share."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.model.cluster import Cluster, Share
from teho.model.doctor import Symptom
from teho.model.finding import Severity, Threshold
from teho.units import GIB, parse_mib

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "share"
ABOUT = "cores and memory for each GPU, against the site's share"
DECISIVE = False

_LITTLE = Threshold(
    50, "% of the share", "Teho's own choice: half of what the site keeps for each GPU"
)


def check(snapshot: Snapshot) -> Outcome:
    """Compare what the job has for each of its GPUs with what the catalogue says is its part."""
    given = snapshot.allocation
    if snapshot.cluster is None:
        return moot("this is not a cluster that Teho knows")
    if not snapshot.in_job or not given.gpus_held:
        return moot("no job with GPUs")
    share = _share(snapshot.cluster, snapshot)
    if share is None:
        return unknown(f"which share of {snapshot.cluster.title} these GPUs have is not known")
    found: list[Symptom] = []
    seen: list[str] = []
    if share.cores and given.cores_asked and "cores" not in share.automatic:
        each = given.cores_asked / given.gpus_held
        seen.append(f"{each:g} of {share.cores} cores")
        found += _judged(snapshot, share, "cores", each, share.cores, "cores")
    limit = given.memory_limit_bytes
    if share.memory and limit and "memory" not in share.automatic:
        if given.memory_limit_source == "node":
            return found or unknown("the memory that the job may use is not known")
        each, fair = limit / GIB / given.gpus_held, parse_mib(share.memory) / 1024
        seen.append(f"{each:.3g} of {fair:g} GiB")
        found += _judged(snapshot, share, "memory", each, fair, "GiB")
    if found:
        return found
    if not seen:
        return moot("cores and memory come with the GPU here")
    return fine(f"{' and '.join(seen)} for each GPU")


def _share(cluster: Cluster, snapshot: Snapshot) -> Share | None:
    """Return the share of the GPUs' type, by the partition, or else by the product's name."""
    types = {
        kind.gpu.type
        for partition in cluster.partitions
        for kind in cluster.nodes
        if kind.gpu
        and kind.name in partition.kinds
        and partition.name == (snapshot.allocation.partition or "")
    }
    names = {device.name.lower() for device in snapshot.gpus}
    alike = [one for one in cluster.shares if any(one.gpu.lower() in name for name in names)]
    within = [one for one in cluster.shares if one.gpu in types]
    for candidates in ([one for one in alike if one in within], alike, within):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _judged(
    snapshot: Snapshot, share: Share, what: str, each: float, fair: float, unit: str
) -> list[Symptom]:
    evidence = ((f"{what} for each GPU", each, unit), ("the site's share", fair, unit))
    of_site = Threshold(fair, unit, share.source)
    if each > fair * 1.01:
        return [
            symptom(
                ID,
                Severity.WARNING,
                f"The job holds more {what} for each GPU than its share: {each:.3g} of "
                f"{fair:g} {unit}. Others' GPUs stay idle for want of it, or more is billed.",
                f"Ask for {fair:g} {unit} for each GPU: `teho plan` writes the request.",
                *evidence,
                thresholds=(of_site,),
            )
        ]
    if snapshot.local_size == 1 and each * 100 < fair * _LITTLE.value:
        return [
            symptom(
                ID,
                Severity.REMARK,
                f"The job holds less {what} for each GPU than it may: {each:.3g} of "
                f"{fair:g} {unit}.",
                f"Ask for {fair:g} {unit} for each GPU if loading data is slow: it is kept for "
                "them, even if they are unused.",
                *evidence,
                thresholds=(of_site, _LITTLE),
            )
        ]
    return []
