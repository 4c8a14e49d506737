"""What a kind of waste is, and the thresholds that the kinds use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from teho.explain.policy import Policy
from teho.explain.shared_thresholds import DIGEST
from teho.explain.waste.use import JobUse
from teho.model.digest import Amounts
from teho.model.finding import Threshold
from teho.patterns import lazy_pattern
from teho.schedulers.advice import Advice
from teho.units import GIB

__all__ = [
    "CORES_OF_A_GPU",
    "GIB_OF_A_CORE",
    "Found",
    "Kind",
    "Limits",
    "Waste",
    "billed",
    "is_interactive",
    "is_short",
    "limits_of",
    "threshold_of",
]

CORES_OF_A_GPU = 12.0
GIB_OF_A_CORE = 4.0
"""Teho's own choice, only for the order of jobs, kinds and changes: a GPU-hour counts as 12
core-hours, and 4 GiB-hours count as one core-hour."""
Resource = Literal["gpu", "core", "memory", "time", "blocked"]
"""`blocked`: resources of the nodes that the job did not have, and that no other job could use."""
Found = tuple[Amounts, str, float]
"""Amounts, words and what the job needed, as in `Waste`."""


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
    gpus_blocked_min: float


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
    judge: Callable[[JobUse, Limits], Found | None]
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
        gpus_blocked_min=value(DIGEST, "gpus_blocked_min"),
    )


def threshold_of(kind: Kind, policy: Policy) -> Threshold:
    """Return the threshold that a kind names, with its source."""
    of_rule: Mapping[str, Threshold] = policy.thresholds[kind.rule]
    return of_rule[kind.threshold]


def is_short(use: JobUse, limits: Limits) -> bool:
    """Return whether a job was too short to judge."""
    return use.hours * 3600 < limits.elapsed_min_s


_INTERACTIVE = lazy_pattern(
    r"interactive|bash|sh|zsh|sys/dashboard/.*|ondemand/.*|.*jupyter.*|spawner-.*", re.IGNORECASE
)
"""Names of jobs that `srun --pty bash`, `salloc`, Open OnDemand and JupyterHub start."""


def is_interactive(use: JobUse) -> bool:
    """Return whether a job is a session in which a user works."""
    named = _INTERACTIVE.fullmatch(use.job.name) is not None
    return named or any(step.name == "interactive" for step in use.job.steps)


def billed(use: JobUse, share: float) -> float | None:
    """Return the billing-hours of a share of a job; None: not known."""
    billing = use.billing_hours
    return None if billing is None else billing * share
