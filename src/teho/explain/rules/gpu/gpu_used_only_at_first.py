"""A GPU was used at first and then held idle to the end."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain import advice
from teho.explain.context import NodeGpu, RuleContext, Series, name_all, per_place, span
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.units import format_duration

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_used_only_at_first"
RANK = 80
SAYS = "a GPU was used at first, and then idle to the end"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "idle_below_percent": Threshold(
        10.0, "%", "SageMaker's profiler rules: a GPU below 10 % is idle"
    ),
    "idle_share_percent": Threshold(
        33.3,
        "%",
        "Teho's own choice, a third of the run; jobstats#28 asks to judge windows as well as means",
    ),
    "idle_share_critical_percent": Threshold(
        50.0, "%", "Teho's own choice: half of the GPU's time was paid for and not used"
    ),
    "blips_percent": Threshold(
        5.0, "%", "Teho's own choice: a last evaluation does not make an idle stretch a busy one"
    ),
}
MUTES = Mutes(
    (
        "gpu_one_idle",
        *STARVED,
        "communication_bound",
        "rank_imbalance",
        "batch_small",
    ),
    because="the mean is low because the GPU was given up, not because it was fed badly",
)


class _Split(NamedTuple):
    """A series cut where the GPU stopped working."""

    of: NodeGpu
    used_bins: int
    busy_percent: float
    """Mean before the cut."""
    idle_percent: float
    """Share of the whole run that was recorded as idle after the cut."""


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs that were idle for the last third of the run or more, having been used before."""
    splits = []
    for of in context.gpus:
        busy = context.series(of, "gpu_busy_percent")
        split = _split(of, busy, context) if busy else None
        if split and split.idle_percent >= context.limit("idle_share_percent"):
            splits.append(split)
    critical = context.limit("idle_share_critical_percent")
    bands = (
        (Severity.CRITICAL, [split for split in splits if split.idle_percent >= critical]),
        (Severity.WARNING, [split for split in splits if split.idle_percent < critical]),
    )
    return context.outcome([_finding(context, severity, band) for severity, band in bands if band])


def _split(of: NodeGpu, busy: Series, context: RuleContext) -> _Split | None:
    """Cut at the earliest idle bin after which at most `blips_percent` of the bins are busy.

    Bins that were not recorded are neither idle nor busy.
    """
    below, blips = context.limit("idle_below_percent"), context.limit("blips_percent") / 100
    cut, idle_bins = None, 0
    seen = idle = 0
    for position in range(len(busy) - 1, -1, -1):
        value = busy[position]
        if value is None:
            continue
        seen += 1
        if value < below:
            idle += 1
            if seen - idle <= blips * seen:
                cut, idle_bins = position, idle
    before = [value for value in busy[:cut] if value is not None]
    if cut is None or not before or sum(before) / len(before) < below:
        return None
    return _Split(of, cut, sum(before) / len(before), 100 * idle_bins / len(busy))


def _finding(context: RuleContext, severity: Severity, splits: list[_Split]) -> Finding:
    idle = [split.of for split in splits]
    until = [split.used_bins * context.summary.bin_s for split in splits]
    share = span([split.idle_percent for split in splits], "%")
    return context.finding(
        severity,
        f"{name_all(idle)} {'was' if len(idle) == 1 else 'were'} used for the first "
        f"{span(until, 's')} and then idle for the last {share} of the run.",
        evidence=(
            *per_place("GPU idle at the end", "%", [(at.of, at.idle_percent) for at in splits]),
            *per_place("GPU busy before", "%", [(at.of, at.busy_percent) for at in splits]),
            *per_place("last used after", "s", list(zip(idle, until, strict=True))),
        ),
        judged_by=["idle_share_percent", "idle_share_critical_percent", "idle_below_percent"],
        action=(
            "End the GPU job where the work on the GPU ends: "
            f"{advice.later_job(context.scheduler)}. If the program waits or hangs there, its log "
            f"from {format_duration(min(until))} on says for what."
        ),
        subjects=idle,
    )
