"""The time of lines that leave the GPU idle, because the source shows a faster way on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from teho.explain.options import OptionTime, option_times
from teho.explain.program_context import GpuUse, ProgramContext
from teho.explain.shared_thresholds import TEN_SAMPLES, chosen
from teho.model.finding import Threshold
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame

__all__ = ["KIND", "THRESHOLDS", "GpuLines", "LineLimits", "gpu_lines"]

KIND = "gpu_idle_at_lines"
"""The rule that names these lines, and the key `rule` of their options."""
THRESHOLDS: dict[str, Threshold] = {
    "busy_percent": chosen(
        80.0,
        "%",
        "as in the rule waits_for_device: above this limit, the GPU has enough work; only if few "
        "of its multiprocessors work, the lines still count",
    ),
    "sm_active_percent": Threshold(
        25.0,
        "%",
        "KempnerPulse, a monitoring tool, reports a GPU that is busy for 40 % of the time or more "
        "and has an SM activity below 25 %",
    ),
    "large_percent": chosen(
        20.0, "%", "lines that take less than 2 s count only above this share of the working time"
    ),
    "large_min_s": TEN_SAMPLES,
}


class LineLimits(NamedTuple):
    """The thresholds of the rule, here as they are shipped."""

    busy_percent: float = THRESHOLDS["busy_percent"].value
    sm_active_percent: float = THRESHOLDS["sm_active_percent"].value
    large_percent: float = THRESHOLDS["large_percent"].value
    large_min_s: float = THRESHOLDS["large_min_s"].value


class GpuLines(NamedTuple):
    """Lines of a program that leave its GPU idle."""

    times: Sequence[OptionTime]
    """The lines of each cause, longest first."""
    working_s: float
    """Time of the process after its first step; without known steps, without its start."""
    gpu: GpuUse
    """How busy the GPU was."""

    @property
    def stacks(self) -> frozenset[tuple[Frame, ...]]:
        """The stacks with these lines."""
        return frozenset(stack for time in self.times for stack in time.stacks)

    @property
    def percent(self) -> float:
        """The share of the working time that all these lines took."""
        every = {stack: s for time in self.times for stack, s in time.stacks.items()}
        return min(100.0, 100 * sum(every.values()) / self.working_s)


def gpu_lines(
    context: ProgramContext, main: MainProcess, limits: LineLimits | None = None
) -> GpuLines | None:
    """Return the lines of a process that leave the GPU idle; None: there are none.

    If it is not known how busy the GPU was, this is noted.

    Args:
        context: the run.
        main: the process.
        limits: the thresholds; None: the shipped ones.
    """
    limits = limits or LineLimits()
    times = option_times(main, KIND)
    if not times or not context.gpus_beside(main) or not main.process.may_use_device:
        return None
    gpu = context.gpu_use(main)
    if gpu is None or not _has_little_work(context, main, gpu, limits):
        return None
    working_s = _working_s(main)
    large = [one for one in times if _is_loss(context, one.wall_s, working_s, limits)]
    return GpuLines(large, working_s, gpu) if large else None


def _has_little_work(
    context: ProgramContext, main: MainProcess, gpu: GpuUse, limits: LineLimits
) -> bool:
    """Return whether the GPU could do more, and did something."""
    if gpu.busy_percent <= 0:
        return False
    if gpu.busy_percent < limits.busy_percent:
        return True
    active = [context.at_work(one, "gpu_sm_active_percent") for one in context.gpus_beside(main)]
    known = [one for one in active if one is not None]
    return bool(known) and max(known) < limits.sm_active_percent


def _working_s(main: MainProcess) -> float:
    """Return the time of a process after its first step, or without its start, in s."""
    set_up_s = sum(seen.wall_s for seen in main.process.set_up)
    if main.process.progress and set_up_s:
        return max(main.process.wall_s - set_up_s, 1e-3)
    start_s = main.seconds(Doing.IMPORTING, Doing.COMPILING, Doing.ENDING)
    return max(main.process.wall_s - start_s, 1e-3)


def _is_loss(context: ProgramContext, seconds: float, working_s: float, limits: LineLimits) -> bool:
    share = 100 * seconds / working_s
    is_large = share >= limits.large_percent
    if is_large and seconds >= limits.large_min_s:
        return True
    return share >= context.limit("lost_percent") and seconds >= context.limit("lost_min_s")
