"""The kinds of waste that the accounting of a job can show.

Each kind uses the thresholds of a rule. A job is not judged if it was short, or if a figure is
missing. The kinds of one resource are in an order: an hour of a resource counts for one kind only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from teho.explain.shared_thresholds import DIGEST
from teho.explain.waste import of_gpus
from teho.explain.waste.kind import Kind, Limits, Waste, is_short
from teho.explain.waste.of_cores import (
    blocked_gpus,
    few_cores,
    idle_session,
    little_memory,
    little_time,
    one_core,
)
from teho.explain.waste.of_gpus import (
    low_use,
    never_used,
    only_at_first,
    processes_gone,
    too_large,
)
from teho.explain.waste.use import JobUse
from teho.model.job import JobState
from teho.schedulers.advice import Advice
from teho.units import GIB, counted, format_duration

__all__ = ["KINDS", "is_judged", "waste_of"]

_SESSION = "gpu_session_idle"


def is_judged(use: JobUse, limits: Limits) -> bool:
    """Return whether the waste of a job is looked for."""
    state = use.job.state
    # A node that failed cannot report what its processes used.
    return state.ended and state is not JobState.NODE_FAILED and not is_short(use, limits)


def waste_of(use: JobUse, limits: Limits) -> Iterator[Waste]:
    """Yield the waste of a job: of each resource, at most one kind, except for its GPUs.

    GPUs that were never used, or only at first, and GPUs with low use are different GPUs of a job.
    An idle session has all GPUs of a job.
    """
    if not is_judged(use, limits):
        return
    taken: set[str] = set()
    for kind in KINDS:
        if kind.resource in taken:
            continue
        found = kind.judge(use, limits)
        if found:
            yield Waste(kind, *found)
            if kind.resource != "gpu" or kind.key == _SESSION:
                taken.add(kind.resource)


# Sentences and advice.


def _fewer_gpus(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    most = int(max(needed))
    if not most:
        return (
            "Check whether the program finds a GPU: "
            '`python -c "import torch; print(torch.cuda.is_available())"`. If the program needs '
            "no GPU, do not request one."
        )
    nodes = use.job.nodes or 1
    option = advice.use_gpus(math.ceil(most / nodes), None)
    return f"Leave out the unused GPUs: {option or f'request {most}'}."


def _end_sooner(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del advice
    idle = format_duration(min(needed))
    return (
        f"End the job when the work on the GPU ends, at least {idle} sooner, and do the rest of "
        f"the work in a job without GPUs. `teho report {use.job.id}` shows when the GPU was idle."
    )


def _end_with_program(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del advice
    idle = format_duration(min(needed))
    return (
        "End the job when the program ends: no process used the GPU for at least the last "
        f"{idle}. Check the end of the batch script for `sleep`, and for programs that wait. "
        f"`teho report {use.job.id}` shows when the last process ended."
    )


def _smaller_gpu(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del advice, use
    gib = math.ceil(max(needed) / GIB)
    return (
        "Request a smaller GPU, or a slice of a GPU (MIG): `teho plan --gpus 1 --gpu-memory "
        f"{gib}GiB` shows which GPUs and slices have enough memory."
    )


def _find_cause(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del advice, needed
    return (
        "To find the cause, record one of these jobs: write `teho run -- COMMAND` in the batch "
        "script, and call `teho report` after the job. The newest of these jobs is job "
        f"{use.job.id}."
    )


def _fewer_cores(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del use
    count = int(max(needed))
    option = advice.cores(count, None)
    return f"Request {counted(count, 'core')}{f': {option}' if option else ''}."


def _end_session(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del needed
    option = advice.time_limit(use.hours * 1800)
    return f"End the session when you stop working, or request a shorter time, such as {option}."


def _partition_without_gpus(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del advice, use
    return (
        "Submit these jobs to a partition without GPUs: "
        f"`teho plan --gpus 0 --cpus {int(max(needed))}` shows which partitions fit."
    )


def _less_memory(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    amount = max(needed)
    option = advice.memory(amount / GIB, use.cores)
    return f"Request less memory{f': {option}' if option else ''}."


def _less_time(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del use
    option = advice.time_limit(60 * math.ceil(max(needed) / 60))
    return f"Request {option}. Short jobs start sooner."


def _sentence(rest: str) -> Callable[[int, str], str]:
    def sentence(jobs: int, name: str) -> str:
        who = f"{counted(jobs, 'job')} {name}".strip()
        return f"{who}: {rest}"

    return sentence


KINDS: tuple[Kind, ...] = (
    Kind(_SESSION, "Idle interactive sessions with GPUs", "gpu", DIGEST, "interactive_percent",
         of_gpus.idle_session, _sentence("these sessions almost never used the GPUs."),
         _end_session),
    Kind("gpu_never_used", "GPUs that were never used", "gpu", "gpu_never_used",
         "busy_max_percent", never_used, _sentence("GPUs were never used."), _fewer_gpus),
    Kind("gpu_processes_gone", "GPUs that were kept after their processes had ended", "gpu",
         "gpu_used_only_at_first", "idle_share_percent", processes_gone,
         _sentence("the job went on after its processes on the GPUs had ended."),
         _end_with_program),
    Kind("gpu_used_only_at_first", "GPUs that were used only at first", "gpu",
         "gpu_used_only_at_first", "idle_share_percent", only_at_first,
         _sentence("the GPUs were idle at the end."), _end_sooner),
    Kind("gpu_too_large", "Large GPUs for small work", "gpu", DIGEST, "gpu_memory_percent",
         too_large, _sentence("large GPUs had low use, and little of their memory was used."),
         _smaller_gpu),
    Kind("gpu_low_use", "GPUs with low use", "gpu", "gpu_low_use", "warning_percent", low_use,
         _sentence("the GPUs had work for only a small part of the time."), _find_cause),
    Kind("interactive_idle", "Idle interactive sessions", "core", DIGEST, "interactive_percent",
         idle_session, _sentence("these sessions used almost no core."), _end_session),
    Kind("serial_program", "One core used, several requested", "core", "serial_program",
         "one_core_max", one_core, _sentence("only one core was used, but several were requested."),
         _fewer_cores),
    Kind("cores_unused", "Cores that were not used", "core", "cores_unused", "critical_percent",
         few_cores, _sentence("few of the cores were used."), _fewer_cores),
    Kind("memory_overasked", "Memory that was not used", "memory", "memory_overasked",
         "used_percent", little_memory, _sentence("little of the memory was used."), _less_memory),
    Kind("time_overasked", "Time limits far too long", "time", "time_overasked", "used_percent",
         little_time, _sentence("the time limit was far too long."), _less_time),
    Kind("gpus_blocked", "Jobs without GPUs that left no core for the GPUs of their nodes",
         "blocked", DIGEST, "gpus_blocked_min", blocked_gpus,
         _sentence("these jobs had no GPUs, but left no core for the GPUs of their nodes."),
         _partition_without_gpus),
)  # fmt: skip
"""Every kind, in the order of judging."""
