"""Whether the cores and GPUs of a run were idle at its end, and whether it moved data."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.context import RuleContext
from teho.model.missing import Missing
from teho.model.summary import GpuSummary, NodeSummary

__all__ = ["at_end", "is_idle", "moves_data"]

_TRAFFIC = (
    "job_read_calls_bytes", "job_write_calls_bytes", "net_receive_bytes",
)  # fmt: skip


def at_end(
    context: RuleContext, place: NodeSummary | GpuSummary, metric: str, tail_s: float
) -> list[float]:
    """Return the known values of a metric in the last time bins of a run.

    Args:
        context: the run.
        place: a node or a GPU.
        metric: its name.
        tail_s: the time of these bins. If the run has short bins for its end, they are used, and
            the time is limited to all of them.
    """
    series: Sequence[float | None] = place.end_series.get(metric, [])
    bin_s = context.summary.end_bin_s
    if not series or bin_s <= 0:
        series, bin_s = place.series.get(metric, []), context.summary.bin_s
    count = max(1, int(tail_s / bin_s)) if bin_s > 0 else 1
    return [value for value in series[-count:] if value is not None]


def is_idle(
    context: RuleContext, tail_s: float, *, cores_max: float, gpu_busy_max_percent: float
) -> bool:
    """Return whether the cores and GPUs of the run were idle at its end.

    Args:
        context: the run.
        tail_s: for how long.
        cores_max: the highest use of cores of a node that counts as idle.
        gpu_busy_max_percent: the same for a GPU.
    """
    for node in context.summary.nodes:
        used = at_end(context, node, "job_cpu_s", tail_s)
        if not used or max(used) > cores_max:
            return False
        for gpu in node.gpus:
            if isinstance(gpu.stats.get("gpu_busy_percent"), Missing):
                continue
            busy = at_end(context, gpu, "gpu_busy_percent", tail_s)
            if busy and max(busy) > gpu_busy_max_percent:
                return False
    return True


def moves_data(context: RuleContext, tail_s: float, bytes_max_per_s: float) -> bool:
    """Return whether the run has read or written all the time at its end.

    Args:
        context: the run.
        tail_s: for how long.
        bytes_max_per_s: traffic of a node up to this rate does not count.
    """
    for node in context.summary.nodes:
        for metric in _TRAFFIC:
            values = at_end(context, node, metric, tail_s)
            if values and min(values) > bytes_max_per_s:
                return True
    return False
