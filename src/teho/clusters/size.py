"""The size of a whole cluster: cores of the nodes without GPUs, and GPUs."""

from __future__ import annotations

from teho.model.cluster import Cluster

__all__ = ["cores_per_gpu", "whole_size"]


def whole_size(cluster: Cluster) -> tuple[int | None, int | None]:
    """Return the cores of all nodes without GPUs, and all GPUs. None: not documented.

    A source's own totals come first; else the nodes are added up. Slices of GPUs do not count.
    """
    if cluster.totals:
        return cluster.totals.cores, cluster.totals.gpus
    cores: int | None = 0
    gpus: int | None = 0
    for kind in cluster.nodes:
        if kind.gpu is None:
            if cores is not None:
                cores = None if kind.count is None else cores + kind.count * kind.cores
        elif gpus is not None and not kind.gpu.part_of:
            known = kind.count is not None and kind.gpu.count is not None
            gpus = gpus + kind.count * kind.gpu.count if known else None  # type: ignore[operator]
    return cores, gpus


def cores_per_gpu(cluster: Cluster) -> int | None:
    """Return how many cores the nodes without GPUs have for each GPU. None: not documented.

    The Alliance's guide compares these totals: a job on cores usually waits less than a job on a
    GPU, since there are so many more of them (GUIDE 645-672).
    """
    cores, gpus = whole_size(cluster)
    return round(cores / gpus) if cores and gpus else None
