"""The time of lines that leave the GPU idle, because the source shows a faster way on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from teho.explain.options import OptionTime, option_times
from teho.explain.program_context import GpuUse, ProgramContext
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame

__all__ = ["KIND", "GpuLines", "gpu_lines"]

KIND = "gpu_idle_at_lines"
"""The rule that names these lines, and the key `rule` of their options. Its thresholds also count
when other rules ask for these lines."""


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


def gpu_lines(context: ProgramContext, main: MainProcess) -> GpuLines | None:
    """Return the lines of a process that leave the GPU idle; None: there are none.

    If it is not known how busy the GPU was, this is noted.
    """
    times = option_times(main, KIND)
    if not times or not context.gpus_beside(main) or not main.process.may_use_device:
        return None
    gpu = context.gpu_use(main)
    if gpu is None or not _has_little_work(context, main, gpu):
        return None
    working_s = _working_s(main)
    large = [one for one in times if _is_loss(context, one.wall_s, working_s)]
    return GpuLines(large, working_s, gpu) if large else None


def _has_little_work(context: ProgramContext, main: MainProcess, gpu: GpuUse) -> bool:
    """Return whether the GPU could do more, and did something."""
    if gpu.busy_percent <= 0:
        return False
    if gpu.busy_percent < context.limit("busy_percent", KIND):
        return True
    active = [context.at_work(one, "gpu_sm_active_percent") for one in context.gpus_beside(main)]
    known = [one for one in active if one is not None]
    return bool(known) and max(known) < context.limit("sm_active_percent", KIND)


def _working_s(main: MainProcess) -> float:
    """Return the time of a process after its first step, or without its start, in s."""
    set_up_s = sum(seen.wall_s for seen in main.process.set_up)
    if main.process.progress and set_up_s:
        return max(main.process.wall_s - set_up_s, 1e-3)
    start_s = main.seconds(Doing.IMPORTING, Doing.COMPILING, Doing.ENDING)
    return max(main.process.wall_s - start_s, 1e-3)


def _is_loss(context: ProgramContext, seconds: float, working_s: float) -> bool:
    share = 100 * seconds / working_s
    is_large = share >= context.limit("large_percent", KIND)
    if is_large and seconds >= context.limit("large_min_s", KIND):
        return True
    return share >= context.limit("lost_percent") and seconds >= context.limit("lost_min_s")
