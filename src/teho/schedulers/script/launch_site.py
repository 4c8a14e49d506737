"""The part of a cluster that `teho launch` needs, small enough for every rank to read."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from teho.config.toml import read_toml, to_noun
from teho.model.cluster import Automatic, Cluster, Share
from teho.schedulers.registry import scheduler_of
from teho.schedulers.site_types import Site
from teho.units import parse_mib

__all__ = ["is_known_by_name", "launch_site"]


def launch_site(cluster: Cluster) -> Site:
    """Return a cluster as a `Site`: only numbers and text."""
    disk, binding = cluster.local_disk, cluster.binding
    reserved = {core for kind in cluster.nodes if kind.gpu for core in kind.reserved_cores}
    return {
        "name": cluster.name,
        "recognised_by": dict(cluster.recognised_by),
        "hosts": list(cluster.hosts),
        "cores_of_gpu": [list(cores) for cores in binding.cores_of_gpu] if binding else [],
        "reserved_cores": sorted(reserved),
        "cores_with_gpu": _with_each_gpu(cluster, "cores"),
        "memory_with_gpu_mib": _with_each_gpu(cluster, "memory"),
        "gpus_visible": binding.gpus_visible if binding else "all",
        "scratch": disk.place if disk else "",
        "scratch_in_memory": bool(disk and disk.in_memory),
        "generations": [
            {
                "name": one.generation,
                "variables": dict(one.variables),
                "directories": list(one.directories),
            }
            for one in cluster.environment
        ],
    }


def _with_each_gpu(cluster: Cluster, what: Automatic) -> int:
    """Return the cores, or the MiB of memory, that come with each GPU and are not in the slots.

    0: none, or a different number for each type of GPU, because the job does not know its type.
    """
    if not scheduler_of(cluster.scheduler).has_slots:
        return 0
    shares = {share.gpu: share for share in cluster.shares if what in share.automatic}
    types = {kind.gpu.type for kind in cluster.nodes if kind.gpu}
    amounts = {_amount(shares.get(name), what) for name in types}
    return amounts.pop() if len(amounts) == 1 else 0


def _amount(share: Share | None, what: Automatic) -> int:
    if share is None:
        return 0
    if what == "cores":
        return share.cores or 0
    return parse_mib(share.memory) if share.memory else 0


def is_known_by_name(cluster: Cluster) -> bool:
    """Return whether `teho launch`, which only has Teho's own files, finds all this by name."""
    path = Path(str(resources.files("teho.clusters") / "files" / f"{cluster.name}.toml"))
    if not path.exists():
        return False
    return launch_site(to_noun(read_toml(path), Cluster, path)) == launch_site(cluster)
