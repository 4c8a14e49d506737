"""What `teho launch` needs of a cluster, small enough for every rank to read."""

from __future__ import annotations

from pathlib import Path

from teho.clusters.catalogue import read_cluster
from teho.model.cluster import Cluster

__all__ = ["is_known_by_name", "launch_site"]

_PACKAGED = Path(__file__).parent / "files"


def launch_site(cluster: Cluster) -> dict[str, object]:
    """Return a cluster as `teho.launch.site_types.Site` has it: numbers and text alone."""
    disk, binding = cluster.local_disk, cluster.binding
    scratch = "" if disk is None else (f"${disk.variable}" if disk.variable else disk.path)
    reserved = {core for kind in cluster.nodes if kind.gpu for core in kind.reserved_cores}
    return {
        "name": cluster.name,
        "recognised_by": dict(cluster.recognised_by),
        "hosts": list(cluster.hosts),
        "cores_of_gpu": [list(cores) for cores in binding.cores_of_gpu] if binding else [],
        "reserved_cores": sorted(reserved),
        "gpus_visible": binding.gpus_visible if binding else "all",
        "scratch": scratch,
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


def is_known_by_name(cluster: Cluster) -> bool:
    """Return whether `teho launch`, which has only Teho's own files, finds all this by name."""
    path = _PACKAGED / f"{cluster.name}.toml"
    return path.exists() and launch_site(read_cluster(path)) == launch_site(cluster)
