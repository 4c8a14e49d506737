"""How busy a GPU was from its first work to its last, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple, Union

from teho.explain.places import NodeGpu
from teho.explain.program_context import ProgramContext
from teho.explain.time_bins import bins_of_work
from teho.model.program import MainProcess

__all__ = ["Working", "gpu_working"]

_BUSY = "gpu_busy_percent"
_ACTIVE = "gpu_sm_active_percent"
_POWER = "gpu_power_w"


class Working(NamedTuple):
    """The time from the first to the last work of the busiest GPU of a process's node."""

    seconds: float
    busy_percent: float
    active_percent: Union[float, None]
    """SM activity while the GPU was busy. None: not recorded."""
    power_percent: Union[float, None]
    """Power as a share of the power limit. None: not recorded."""


def gpu_working(
    context: ProgramContext, main: MainProcess, least_busy_percent: float
) -> Working | None:
    """Return how a GPU worked; None if none worked, or if its use is not known, which is noted.

    The time before the first work is the start of the program, and no loss of the GPU. The first
    and the last time bin with work count too, unlike in `TimeBins.working`: how long the GPU worked
    is a figure here.

    Args:
        context: the run.
        main: the process.
        least_busy_percent: from this busy share on, a time bin has work.
    """
    found = [_working(context, gpu, least_busy_percent) for gpu in context.gpus_beside(main)]
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: one.busy_percent * one.seconds, default=None)


def _working(context: ProgramContext, gpu: NodeGpu, least: float) -> Working | None:
    busy = context.series(gpu, _BUSY)
    if busy is None:
        return None
    bins = bins_of_work([busy], least)
    if not bins:
        return None
    first, end = bins.start, bins.stop
    active: Sequence[float | None] = gpu.gpu.series.get(_ACTIVE, [])
    power = [one for one in gpu.gpu.series.get(_POWER, [])[first:end] if one is not None]
    limit_w = gpu.gpu.device.power_limit_w
    return Working(
        len(bins) * context.summary.bin_s,
        fmean(one for one in busy[first:end] if one is not None),
        _active_while_busy(busy[first:end], active[first:end]),
        100 * fmean(power) / limit_w if power and limit_w else None,
    )


def _active_while_busy(
    busy: Sequence[float | None], active: Sequence[float | None]
) -> float | None:
    both = [
        (share, value)
        for share, value in zip(busy, active, strict=False)
        if share is not None and value is not None
    ]
    busy_sum = sum(share for share, _ in both)
    return min(100.0, 100 * sum(value for _, value in both) / busy_sum) if busy_sum else None
