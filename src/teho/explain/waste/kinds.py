"""The kinds of waste that the accounting of a job can show.

Each kind uses the thresholds of a rule. A job is not judged if it was short, or if a figure is
missing. The kinds of one resource are in an order: an hour of a resource counts for one kind only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from teho.explain.policy import Policy
from teho.explain.shared_thresholds import DIGEST
from teho.explain.waste.use import JobUse
from teho.model.digest import Amounts
from teho.model.finding import Threshold
from teho.model.job import JobState
from teho.schedulers.advice import Advice
from teho.units import GIB, counted, format_bytes, format_duration, least

__all__ = [
    "KINDS",
    "Kind",
    "Limits",
    "Waste",
    "is_short",
    "limits_of",
    "threshold_of",
    "waste_of",
]

Resource = Literal["gpu", "core", "memory", "time"]


class Limits(NamedTuple):
    """The values of the thresholds, read once for all jobs."""

    elapsed_min_s: float
    gpu_low_percent: float
    gpu_idle_end_percent: float
    gpu_large_bytes: float
    gpu_memory_percent: float
    cores_low_percent: float
    one_core_min: float
    one_core_max: float
    cores_min: float
    interactive_min_s: float
    interactive_percent: float
    memory_percent: float
    memory_min_bytes: float
    memory_margin: float
    memory_of_core_bytes: float
    time_min_s: float
    time_percent: float
    time_margin: float


class Waste(NamedTuple):
    """Waste of one kind in one job."""

    kind: Kind
    amounts: Amounts
    words: str
    """Such as `1.0 of 40 cores used`."""
    needed: float
    """What the job needed: cores, GPUs, bytes or seconds, as the kind counts."""


class Kind(NamedTuple):
    """A kind of waste."""

    key: str
    title: str
    resource: Resource
    rule: str
    """Rule, or shared section, of the threshold."""
    threshold: str
    judge: Callable[[JobUse, Limits], tuple[Amounts, str, float] | None]
    sentence: Callable[[int, str], str]
    """Sentence for a number of jobs with a name."""
    advise: Callable[[Advice, Sequence[float], JobUse], str]
    """What to change, from what the jobs needed, and one of them."""


def limits_of(policy: Policy) -> Limits:
    """Return the values of the thresholds that the kinds use."""

    def value(rule: str, name: str) -> float:
        return policy.thresholds[rule][name].value

    return Limits(
        elapsed_min_s=value(DIGEST, "elapsed_min_s"),
        gpu_low_percent=value("gpu_low_use", "warning_percent"),
        gpu_large_bytes=value(DIGEST, "gpu_large_gib") * GIB,
        gpu_memory_percent=value(DIGEST, "gpu_memory_percent"),
        gpu_idle_end_percent=value("gpu_used_only_at_first", "idle_share_percent"),
        cores_low_percent=value("cores_unused", "critical_percent"),
        one_core_min=value("serial_program", "one_core_min"),
        one_core_max=value("serial_program", "one_core_max"),
        cores_min=value(DIGEST, "cores_min"),
        interactive_min_s=value(DIGEST, "interactive_min_s"),
        interactive_percent=value(DIGEST, "interactive_percent"),
        memory_percent=value("memory_overasked", "used_percent"),
        memory_min_bytes=value("memory_overasked", "unused_min_gib") * GIB,
        memory_margin=1 + value("memory_overasked", "margin_percent") / 100,
        memory_of_core_bytes=value(DIGEST, "memory_of_core_gib") * GIB,
        time_min_s=value("time_overasked", "used_min_s"),
        time_percent=value("time_overasked", "used_percent"),
        time_margin=value("time_overasked", "margin_factor"),
    )


def threshold_of(kind: Kind, policy: Policy) -> Threshold:
    """Return the threshold that a kind names, with its source."""
    of_rule: Mapping[str, Threshold] = policy.thresholds[kind.rule]
    return of_rule[kind.threshold]


def is_short(use: JobUse, limits: Limits) -> bool:
    """Return whether a job was too short to judge."""
    return use.hours * 3600 < limits.elapsed_min_s


def waste_of(use: JobUse, limits: Limits) -> Iterator[Waste]:
    """Yield the waste of a job: of each resource, at most one kind, except for its GPUs.

    GPUs that were never used, or only at first, and GPUs with low use are different GPUs of a job.
    """
    state = use.job.state
    # A node that failed cannot report what its processes used.
    if not state.ended or state is JobState.NODE_FAILED or is_short(use, limits):
        return
    taken: set[str] = set()
    for kind in KINDS:
        if kind.resource in taken:
            continue
        found = kind.judge(use, limits)
        if found:
            yield Waste(kind, *found)
            if kind.resource != "gpu":
                taken.add(kind.resource)


# GPUs. Only a summary of Jobstats has the mean of each GPU. Slurm's gres/gpuutil is not used: it
# has no mean, and a zero can also mean that Slurm cannot measure the GPU.


def _never_used(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    del limits
    unused = sum(mean == 0 for mean in use.gpu_means)
    if not unused:
        return None
    amounts = _of_gpus(use, unused * use.hours)
    which = "the GPU was" if use.gpus == 1 else f"{unused} of {use.gpus} GPUs were"
    return amounts, f"{which} never used", use.gpus - unused


def _only_at_first(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    idle = [share for share in use.gpu_idle_ends if share >= limits.gpu_idle_end_percent]
    if not idle:
        return None
    which = "GPU" if use.gpus == 1 else f"{len(idle)} of {use.gpus} GPUs"
    words = f"{which} idle for the last {sum(idle) / len(idle):.0f} %"
    return _of_gpus(use, use.hours * sum(idle) / 100), words, use.hours * 3600 * min(idle) / 100


def _too_large(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    large = [place for place in _low(use, limits) if _is_too_large(use, place, limits)]
    if not large:
        return None
    peak = max(use.gpu_memory[place][0] for place in large)
    whole = format_bytes(max(use.gpu_memory[place][1] for place in large))
    wasted = use.hours * sum(1 - use.gpu_means[place] / 100 for place in large)
    words = f"low use, GPU memory {format_bytes(peak)} of {whole}"
    return _of_gpus(use, wasted), words, peak * limits.memory_margin


def _is_too_large(use: JobUse, place: int, limits: Limits) -> bool:
    if not use.gpu_memory:
        return False
    used, whole = use.gpu_memory[place]
    return whole >= limits.gpu_large_bytes and 100 * used <= limits.gpu_memory_percent * whole


def _low(use: JobUse, limits: Limits) -> list[int]:
    """Return the places of the GPUs with low use that were used to the end."""
    idle_ends = use.gpu_idle_ends or (0.0,) * len(use.gpu_means)
    return [
        place
        for place, (mean, idle_end) in enumerate(zip(use.gpu_means, idle_ends, strict=True))
        if 0 < mean <= limits.gpu_low_percent and idle_end < limits.gpu_idle_end_percent
    ]


def _low_use(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    low = [
        use.gpu_means[place] for place in _low(use, limits) if not _is_too_large(use, place, limits)
    ]
    if not low:
        return None
    wasted = use.hours * sum(1 - mean / 100 for mean in low)
    mean = sum(low) / len(low)
    which = "GPU" if use.gpus == 1 else f"{len(low)} of {use.gpus} GPUs"
    return _of_gpus(use, wasted), f"{which} busy {mean:.0f} %", use.gpus


def _of_gpus(use: JobUse, gpu_hours: float) -> Amounts:
    return Amounts(gpu_hours=gpu_hours, billing_hours=_billed(use, gpu_hours / use.gpu_hours))


# Cores. Jobs with GPUs are not judged: their cores often come with the GPUs.


def _interactive(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    if not _is_interactive(use) or use.hours * 3600 < limits.interactive_min_s:
        return None
    return _unused_cores(use, limits.interactive_percent, 1)


_INTERACTIVE = re.compile(
    r"interactive|bash|sh|zsh|sys/dashboard/.*|ondemand/.*|.*jupyter.*|spawner-.*", re.IGNORECASE
)
"""Names of jobs that `srun --pty bash`, `salloc`, Open OnDemand and JupyterHub start."""


def _is_interactive(use: JobUse) -> bool:
    named = _INTERACTIVE.fullmatch(use.job.name) is not None
    return named or any(step.name == "interactive" for step in use.job.steps)


def _serial(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    used = use.cores_used
    if used is None or not limits.one_core_min <= used <= limits.one_core_max:
        return None
    # Some sites count two CPUs for each core: there, one core is two of two CPUs.
    return _unused_cores(use, 100.0, 1) if use.cores >= limits.cores_min else None


def _few_cores(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    if use.cores < limits.cores_min or use.cores <= _tasks(use):
        return None  # each task needs a core
    return _unused_cores(use, limits.cores_low_percent, max(1, _tasks(use)))


def _tasks(use: JobUse) -> int:
    return max((step.tasks or 1 for step in use.job.steps), default=1)


def _unused_cores(
    use: JobUse, most_percent: float, cores_min: int
) -> tuple[Amounts, str, float] | None:
    used = use.cores_used
    if use.gpus or used is None or use.cores < 2 or 100 * used / use.cores >= most_percent:
        return None
    if use.job.more_cores_than_requested:
        return None  # the partition gives whole nodes
    share = 1 - used / use.cores
    amounts = Amounts(core_hours=use.core_hours * share, billing_hours=_billed(use, share))
    # A mean of 8.02 busy cores is 8.
    needed = max(cores_min, math.ceil(used - 0.05))
    return amounts, f"{used:.1f} of {use.cores} cores used", needed


def _billed(use: JobUse, share: float) -> float | None:
    billing = use.billing_hours
    return None if billing is None else billing * share


# Memory and time.


def _memory(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    """Compare the upper bound of the memory with the request.

    Memory up to a usual amount for each core is not judged: it comes with the cores, and no other
    job could use it.
    """
    job, most = use.job, use.memory_most_bytes
    # Whole nodes have more memory than the request.
    requested = least(job.memory_bytes, job.memory_requested_bytes)
    if not requested or not most or use.gpus or (use.job.nodes or 1) > 1:
        return None
    if 100 * most / requested >= limits.memory_percent:
        return None
    needed = max(most * limits.memory_margin, use.cores * limits.memory_of_core_bytes)
    unused = requested - needed
    if unused < limits.memory_min_bytes:
        return None
    words = f"memory {format_bytes(most)} of {format_bytes(requested)}"
    return Amounts(gib_hours=unused / GIB * use.hours), words, needed


def _time(use: JobUse, limits: Limits) -> tuple[Amounts, str, float] | None:
    job, used_s = use.job, use.hours * 3600
    if job.state is not JobState.COMPLETED or not job.time_limit_s or used_s <= limits.time_min_s:
        return None
    if 100 * used_s / job.time_limit_s >= limits.time_percent:
        return None
    words = f"took {format_duration(used_s)} of {format_duration(job.time_limit_s)}"
    return Amounts(), words, used_s * limits.time_margin


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


def _less_memory(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    amount = max(needed)
    option = advice.memory(amount / GIB, use.cores)
    return f"Request less memory{f': {option}' if option else ''}."


def _less_time(advice: Advice, needed: Sequence[float], use: JobUse) -> str:
    del use
    option = advice.time_limit(60 * math.ceil(max(needed) / 60))
    return f"Request {option}. Short jobs start sooner."


def _says(rest: str) -> Callable[[int, str], str]:
    def sentence(jobs: int, name: str) -> str:
        who = f"{counted(jobs, 'job')} {name}".strip()
        return f"{who}: {rest}"

    return sentence


KINDS: tuple[Kind, ...] = (
    Kind("gpu_never_used", "GPUs that were never used", "gpu", "gpu_never_used",
         "busy_max_percent", _never_used, _says("GPUs were never used."), _fewer_gpus),
    Kind("gpu_used_only_at_first", "GPUs that were used only at first", "gpu",
         "gpu_used_only_at_first", "idle_share_percent", _only_at_first,
         _says("the GPUs were idle at the end."), _end_sooner),
    Kind("gpu_too_large", "Large GPUs for small work", "gpu", DIGEST, "gpu_memory_percent",
         _too_large, _says("large GPUs had low use, and little of their memory was used."),
         _smaller_gpu),
    Kind("gpu_low_use", "GPUs with low use", "gpu", "gpu_low_use", "warning_percent", _low_use,
         _says("the GPUs had work for only a small part of the time."), _find_cause),
    Kind("interactive_idle", "Idle interactive sessions", "core", DIGEST, "interactive_percent",
         _interactive, _says("these sessions used almost no core."), _end_session),
    Kind("serial_program", "One core used, several requested", "core", "serial_program",
         "one_core_max", _serial, _says("only one core was used, but several were requested."),
         _fewer_cores),
    Kind("cores_unused", "Cores that were not used", "core", "cores_unused", "critical_percent",
         _few_cores, _says("few of the cores were used."), _fewer_cores),
    Kind("memory_overasked", "Memory that was not used", "memory", "memory_overasked",
         "used_percent", _memory, _says("little of the memory was used."), _less_memory),
    Kind("time_overasked", "Time limits far too long", "time", "time_overasked", "used_percent",
         _time, _says("the time limit was far too long."), _less_time),
)  # fmt: skip
"""Every kind, in the order of judging."""
