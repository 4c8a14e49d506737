"""A run as the summary that Jobstats stores in Slurm's `AdminComment`.

Other tools, such as Princeton's `jobstats` and `jobscope`, then show the job with Teho's figures.
"""

from __future__ import annotations

from teho.explain.places import known_part
from teho.jobs.js1 import Js1, Js1Node
from teho.model.missing import Missing
from teho.model.summary import Figure, NodeSummary, Summary

__all__ = ["js1_of"]


def js1_of(summary: Summary) -> Js1:
    """Return the figures of a run that a summary of Jobstats has. What is missing is left out.

    The keys of GPUs are the indices of the driver. Jobstats has the minor numbers there, which
    differ from the indices on a few machines.
    """
    is_single = len(summary.nodes) == 1
    nodes = {node.name: _node(node, summary.cpu_s if is_single else None) for node in summary.nodes}
    return Js1(nodes=nodes, elapsed_s=round(summary.elapsed_s), gpu_count=len(summary.gpus))


def _node(node: NodeSummary, cpu_s: Figure | None) -> Js1Node:
    busy: dict[str, int | float] = {}
    peak: dict[str, int | float] = {}
    total: dict[str, int | float] = {}
    for gpu in node.gpus:
        minor = str(gpu.device.index)
        mean_percent = known_part(gpu.stats.get("gpu_busy_percent"), "mean")
        most_bytes = known_part(gpu.stats.get("gpu_memory_used_bytes"), "max")
        if mean_percent is not None:
            busy[minor] = round(mean_percent, 1)
        if most_bytes is not None:
            peak[minor] = round(most_bytes)
        if gpu.device.memory_bytes:
            total[minor] = gpu.device.memory_bytes
    counted = node.totals.get("job_cpu_s") if cpu_s is None else cpu_s
    return Js1Node(
        memory_limit_bytes=_whole(node.memory_limit_bytes),
        memory_peak_bytes=_whole(node.memory_peak_bytes),
        cpu_s=None if counted is None or isinstance(counted, Missing) else round(counted, 1),
        core_count=node.cores or None,
        gpu_memory_bytes=total,
        gpu_memory_peak_bytes=peak,
        gpu_busy_percent=busy,
    )


def _whole(figure: Figure) -> int | None:
    return None if isinstance(figure, Missing) else round(figure)
