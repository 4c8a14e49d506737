"""Ask Slurm in which partitions every node has GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from teho.model.member import GpuNodes, NodeShape
from teho.schedulers.inventory import Ask, answer_now
from teho.schedulers.slurm.resources import gpus_in
from teho.schedulers.slurm.rows import settings

__all__ = ["slurm_gpu_nodes"]

_SETTING = "AccountingStorageTRES"


def slurm_gpu_nodes(ask: Ask) -> GpuNodes:
    """Return the partitions in which every node has GPUs, with the kinds of their nodes.

    The answer is empty if Slurm does not account GPUs, because each job then seems to have none. It
    is also empty if every partition has GPUs: a job without GPUs then has no other place.
    """
    config = answer_now(ask, "scontrol", "show", "config")
    counted = settings(config or "").get(_SETTING, "").split(",")
    if "gres/gpu" not in counted:
        return {}
    text = answer_now(ask, "sinfo", "-a", "-e", "-h", "-o", "%R|%c|%G")
    kinds = _kinds(text or "")
    with_gpus = {name: tuple(sorted(own)) for name, own in kinds.items() if _all_have_gpus(own)}
    has_others = any(not one.gpus for own in kinds.values() for one in own)
    return with_gpus if has_others else {}


def _kinds(text: str) -> Mapping[str, set[NodeShape]]:
    """Return the kinds of nodes of each partition; a line that cannot be read has no GPUs."""
    found: dict[str, set[NodeShape]] = {}
    for line in text.splitlines():
        name, *cells = line.split("|")
        if len(cells) == 2:
            is_known = cells[0].isdecimal()
            gpus = sum(count for _, count in gpus_in(cells[1])) if is_known else 0
            found.setdefault(name, set()).add(NodeShape(int(cells[0]) if is_known else 0, gpus))
    return found


def _all_have_gpus(kinds: set[NodeShape]) -> bool:
    return all(one.gpus for one in kinds)
