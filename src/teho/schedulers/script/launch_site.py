"""The part of a cluster that `teho launch` needs, small enough for every rank to read."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from teho.config.toml import read_toml, to_noun
from teho.model.cluster import Cluster

__all__ = ["is_known_by_name", "launch_site"]


def launch_site(cluster: Cluster) -> dict[str, object]:
    """Return a cluster in the form of `teho.launch.site_types.Site`: only numbers and text."""
    disk, binding = cluster.local_disk, cluster.binding
    reserved = {core for kind in cluster.nodes if kind.gpu for core in kind.reserved_cores}
    return {
        "name": cluster.name,
        "recognised_by": dict(cluster.recognised_by),
        "hosts": list(cluster.hosts),
        "cores_of_gpu": [list(cores) for cores in binding.cores_of_gpu] if binding else [],
        "reserved_cores": sorted(reserved),
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


def is_known_by_name(cluster: Cluster) -> bool:
    """Return whether `teho launch`, which only has Teho's own files, finds all this by name."""
    path = Path(str(resources.files("teho.clusters") / "files" / f"{cluster.name}.toml"))
    if not path.exists():
        return False
    return launch_site(to_noun(read_toml(path), Cluster, path)) == launch_site(cluster)
