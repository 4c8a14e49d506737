"""Figures of a whole run, from the figures of its nodes and GPUs.

If a part of a sum is missing, the sum is missing too, with the reason. A smaller sum would be
wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from teho.explain.step import absent_hosts
from teho.explain.wording import listed
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Figure, GpuSummary, NodeSummary, PartlyKnown, Stat, Summary

__all__ = ["cores_used", "energy_of", "lacking", "mean_of", "memory_of"]


def mean_of(gpus: Sequence[GpuSummary], metric: str) -> Figure:
    """Return a gauge's mean over GPUs, weighted by the time for which it was recorded.

    GPUs that did not record it are left out; the mean is missing if no GPU did.
    """
    nothing = Missing(Reason.UNRECORDED, "the recorded metrics do not include this")
    found = [gpu.stats.get(metric, nothing) for gpu in gpus]
    known = [
        (stat.mean, stat.covered_s)
        for stat in found
        if isinstance(stat, (Stat, PartlyKnown)) and stat.mean is not None
    ]
    if not known:
        return next((stat for stat in found if isinstance(stat, Missing)), nothing)
    covered_s = math.fsum(seconds for _, seconds in known)
    if covered_s <= 0:
        return math.fsum(mean for mean, _ in known) / len(known)
    return math.fsum(mean * seconds for mean, seconds in known) / covered_s


def energy_of(gpus: Sequence[GpuSummary]) -> Figure:
    """Return the sum of the GPUs' energy, in joules; a GPU counted with another one is left out."""
    return _sum([gpu.energy_j for gpu in gpus if gpu.energy.counted_with is None])


def cores_used(run: Run, summary: Summary) -> Figure:
    """Return the sum of the mean numbers of cores that the program kept busy on each node."""
    return lacking(run) or _sum([node.cpu_cores_used for node in summary.nodes])


def memory_of(summary: Summary) -> tuple[Figure, Figure]:
    """Return the memory peak and limit of the node that came nearest to its limit."""
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    nodes = [node for node in summary.nodes if not isinstance(node.memory_peak_bytes, Missing)]
    if not nodes:
        if not summary.nodes:
            return nothing, nothing
        return summary.nodes[0].memory_peak_bytes, summary.nodes[0].memory_limit_bytes
    fullest = max(nodes, key=_share_of_memory)
    return fullest.memory_peak_bytes, fullest.memory_limit_bytes


def _share_of_memory(node: NodeSummary) -> float:
    peak, limit = node.memory_peak_bytes, node.memory_limit_bytes
    if isinstance(peak, Missing):
        return 0.0
    return peak if isinstance(limit, Missing) else peak / limit


def lacking(run: Run) -> Missing | None:
    """Return why a sum over all nodes is missing; None if all nodes left a recording."""
    absent = absent_hosts(run)
    return Missing(Reason.UNRECORDED, f"{listed(absent)} left no recording") if absent else None


def _sum(figures: Sequence[Figure]) -> Figure:
    missing = [figure for figure in figures if isinstance(figure, Missing)]
    if missing or not figures:
        return missing[0] if missing else Missing(Reason.UNRECORDED, "no node was recorded")
    return math.fsum(figure for figure in figures if not isinstance(figure, Missing))
