"""How many cores and how much memory does the job have for each GPU, compared with its share?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, remark, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.model.cluster import Cluster, Share
from teho.model.doctor import Symptom
from teho.model.finding import Threshold
from teho.units import GIB, parse_mib

__all__ = ["ABOUT", "check"]

ABOUT = "cores and memory for each GPU, compared with what the cluster intends"

_LITTLE = Threshold(
    50,
    "% of the intended amount",
    "Teho's own choice: Teho reports a job that has less than half of the cores or memory that "
    "the site keeps for each GPU",
)


def check(snapshot: Snapshot) -> Outcome:
    """Compare what the job has for each of its GPUs with the catalogue."""
    given, cluster = snapshot.allocation, snapshot.cluster
    if cluster is None:
        return not_applicable("Teho does not know this cluster")
    if not snapshot.in_job or not given.gpus_held:
        return not_applicable("this is not a job with GPUs")
    share = _share(cluster, snapshot)
    if share is None:
        return unknown(
            f"it is not known how many cores and how much memory {cluster.title} intends for "
            "each GPU"
        )
    found: list[Symptom | None] = []
    seen: list[str] = []
    if share.cores and given.cores_asked and "cores" not in share.automatic:
        each = given.cores_asked / given.gpus_held
        seen.append(f"{each:g} of {share.cores} cores")
        found.append(_judged(snapshot, share, "cores", each, share.cores, "cores"))
    limit = given.memory_limit_bytes
    if share.memory and limit and "memory" not in share.automatic:
        if given.memory_limit_source == "node":
            return [one for one in found if one] or unknown(
                "the memory that the job may use is not known"
            )
        each, fair = limit / GIB / given.gpus_held, parse_mib(share.memory) / 1024
        seen.append(f"{each:.3g} of {fair:g} GiB")
        found.append(_judged(snapshot, share, "memory", each, fair, "GiB"))
    if problems := [one for one in found if one]:
        return problems
    if not seen:
        return not_applicable(
            "on this cluster, a job gets cores and memory of the node automatically with each GPU"
        )
    return fine(f"{' and '.join(seen)} for each GPU")


def _share(cluster: Cluster, snapshot: Snapshot) -> Share | None:
    """Return the share of the GPUs' type, by the partition or by the product's name."""
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
) -> Symptom | None:
    evidence = (
        (f"{what} for each GPU", each, unit),
        (f"{what} that the cluster intends for each GPU", fair, unit),
    )
    of_site = Threshold(fair, unit, share.source)
    amounts = f"{each:.3g} instead of {fair:g} {unit}"
    if each > fair * 1.01:
        return warning(
            f"The job has more {what} for each GPU than the cluster intends ({amounts}). Other "
            "users' GPUs may stay idle, or the job may cost more.",
            f"Request {fair:g} {unit} for each GPU: `teho plan` writes the request.",
            *evidence,
            thresholds=(of_site,),
        )
    if snapshot.local_size == 1 and each * 100 < fair * _LITTLE.value:
        fewer = "fewer" if what == "cores" else "less"
        return remark(
            f"The job has {fewer} {what} for each GPU than the cluster intends: {amounts}.",
            f"If loading data is slow, request {fair:g} {unit} for each GPU: the cluster keeps "
            "this amount for each GPU in any case.",
            *evidence,
            thresholds=(of_site, _LITTLE),
        )
    return None
