"""When a GPU was at work, and what it did then."""

from __future__ import annotations

import math
from collections.abc import Sequence

from teho.model.summary import GpuSummary

__all__ = ["bins_at_work", "mean_in"]


def bins_at_work(
    gpu: GpuSummary, bin_count: int, *, busy_percent: float, time_percent: float
) -> list[int]:
    """Return the time bins in which a GPU was at work; none if it was so for too little time.

    If nobody knows how busy it was, as on a MIG instance, every bin counts.

    Args:
        gpu: the GPU.
        bin_count: of the summary that it belongs to.
        busy_percent: a bin counts from this busy share on.
        time_percent: more than this share of the recorded bins must count.
    """
    busy = gpu.series.get("gpu_busy_percent", [])
    seen = len(busy) - busy.count(None)
    if not seen:
        return list(range(bin_count))
    working = [
        place for place, share in enumerate(busy) if share is not None and share >= busy_percent
    ]
    return working if 100 * len(working) > time_percent * seen else []


def mean_in(bins: Sequence[int], values: Sequence[float | None]) -> float | None:
    """Return the mean of some bins' values; None if none of them was recorded."""
    known = [value for place in bins if (value := values[place]) is not None]
    return math.fsum(known) / len(known) if known else None
