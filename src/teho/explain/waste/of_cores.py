"""Waste of cores, memory and time in one job, and of the GPUs of its nodes."""

from __future__ import annotations

import math

from teho.explain.waste.kind import Found, Limits, billed, is_interactive
from teho.explain.waste.use import JobUse
from teho.model.digest import Amounts
from teho.model.job import JobState
from teho.units import GIB, counted, format_bytes, format_duration, least

__all__ = [
    "blocked_gpus",
    "few_cores",
    "idle_session",
    "judged_cores",
    "judged_memory",
    "little_memory",
    "little_time",
    "one_core",
]

# Cores.


def judged_cores(use: JobUse) -> float | None:
    """Return the mean number of used cores; None: the cores are not judged.

    The cores of a job with GPUs often come with the GPUs, and those of a whole node with the node.
    """
    if use.gpus or not use.cores or use.job.more_cores_than_requested:
        return None
    return use.cores_used


def idle_session(use: JobUse, limits: Limits) -> Found | None:
    """Judge the cores of an interactive session."""
    if not is_interactive(use) or use.hours * 3600 < limits.interactive_min_s:
        return None
    return _unused_cores(use, limits.interactive_percent, 1)


def one_core(use: JobUse, limits: Limits) -> Found | None:
    """Judge whether a job used one of several cores."""
    used = use.cores_used
    if used is None or not limits.one_core_min <= used <= limits.one_core_max:
        return None
    # Some sites count two CPUs for each core: there, one core is two of two CPUs.
    return _unused_cores(use, 100.0, 1) if use.cores >= limits.cores_min else None


def few_cores(use: JobUse, limits: Limits) -> Found | None:
    """Judge whether a job used few of its cores."""
    if use.cores < limits.cores_min or use.cores <= _tasks(use):
        return None  # each task needs a core
    return _unused_cores(use, limits.cores_low_percent, max(1, _tasks(use)))


def _tasks(use: JobUse) -> int:
    return max((step.tasks or 1 for step in use.job.steps), default=1)


def _unused_cores(use: JobUse, most_percent: float, cores_min: int) -> Found | None:
    used = judged_cores(use)
    if used is None or use.cores < 2 or 100 * used / use.cores >= most_percent:
        return None
    share = 1 - used / use.cores
    amounts = Amounts(core_hours=use.core_hours * share, billing_hours=billed(use, share))
    # A mean of 8.02 busy cores is 8.
    needed = max(cores_min, math.ceil(used - 0.05))
    return amounts, f"{used:.1f} of {use.cores} cores used", needed


# Memory and time.


def judged_memory(use: JobUse) -> tuple[int, int] | None:
    """Return the requested memory, and the upper bound of the used memory, in bytes.

    None: the memory is not judged. The memory of a job with GPUs often comes with the GPUs.
    """
    # Whole nodes have more memory than the request.
    requested = least(use.job.memory_bytes, use.job.memory_requested_bytes)
    most = use.memory_most_bytes
    if not requested or not most or use.gpus or (use.job.nodes or 1) > 1:
        return None
    return requested, most


def little_memory(use: JobUse, limits: Limits) -> Found | None:
    """Compare the upper bound of the memory with the request.

    Memory up to a usual amount for each core is not judged: it comes with the cores, and no other
    job could use it.
    """
    known = judged_memory(use)
    if known is None:
        return None
    requested, most = known
    if 100 * most / requested >= limits.memory_percent:
        return None
    needed = max(most * limits.memory_margin, use.cores * limits.memory_of_core_bytes)
    unused = requested - needed
    if unused < limits.memory_min_bytes:
        return None
    words = f"memory {format_bytes(most)} of {format_bytes(requested)}"
    return Amounts(gib_hours=unused / GIB * use.hours), words, needed


def little_time(use: JobUse, limits: Limits) -> Found | None:
    """Compare the time that a job needed with its time limit."""
    job, used_s = use.job, use.hours * 3600
    if job.state is not JobState.COMPLETED or not job.time_limit_s or used_s <= limits.time_min_s:
        return None
    if 100 * used_s / job.time_limit_s >= limits.time_percent:
        return None
    words = f"took {format_duration(used_s)} of {format_duration(job.time_limit_s)}"
    return Amounts(), words, used_s * limits.time_margin


# Nodes.


def blocked_gpus(use: JobUse, limits: Limits) -> Found | None:
    """Judge whether a job without GPUs left cores for the GPUs of its nodes."""
    if use.gpus_blocked < limits.gpus_blocked_min:
        return None
    which = f"no core left for {counted(use.gpus_blocked, 'GPU')}"
    return Amounts(gpu_hours=use.gpus_blocked * use.hours), which, use.cores
