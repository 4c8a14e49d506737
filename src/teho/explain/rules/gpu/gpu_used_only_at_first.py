"""A GPU was used at first, and was then idle to the end of the run."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain import advice
from teho.explain.kinds import STARVED, UNEVEN
from teho.explain.places import NodeGpu, name_all, per_place
from teho.explain.rule import Findings, Located, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import span
from teho.model.summary import Series
from teho.units import format_duration

RANK = 80
SEVERITY = "critical, warning"
THRESHOLDS = {
    "idle_below_percent": Threshold(
        10.0,
        "%",
        "in SageMaker's profiler rules, a GPU that is busy for less than 10 % of the time is idle",
    ),
    "idle_share_percent": chosen(
        33.3,
        "%",
        "above this limit, the GPU was idle for the last third of the run; users of Jobstats, a "
        "job report tool, ask for such a figure: the mean use in each part of a run (issue 28)",
    ),
    "idle_share_critical_percent": chosen(
        50.0,
        "%",
        "above this limit, the GPU was idle for half of the time that the job was billed for",
    ),
    "blips_percent": chosen(
        5.0,
        "%",
        "if an idle GPU works again for only a short time, for example in an evaluation, this "
        "time does not count",
    ),
}
MUTES = ("gpu_one_idle", *STARVED, *UNEVEN, "batch_small")
MUTES_BECAUSE = "the mean use is low because the program stopped using the GPU"


class _Split(NamedTuple):
    """A series that is split at the time when the GPU stopped working."""

    gpu: NodeGpu
    used_bins: int
    busy_percent: float
    """Mean before the split."""
    idle_percent: float
    """Share of the whole run that was recorded as idle after the split."""


def judge(context: RuleContext) -> Findings:
    """Find GPUs that were used, and then idle for the last third of the run or more."""
    splits = []
    for gpu in context.gpus:
        busy = context.series(gpu, "gpu_busy_percent")
        split = _split(gpu, busy, context) if busy else None
        if split and split.idle_percent >= context.limit("idle_share_percent"):
            splits.append(split)
    critical = context.limit("idle_share_critical_percent")
    if long := [one for one in splits if one.idle_percent >= critical]:
        yield _finding(context, Severity.CRITICAL, long)
    if short := [one for one in splits if one.idle_percent < critical]:
        yield _finding(context, Severity.WARNING, short)


def _split(gpu: NodeGpu, busy: Series, context: RuleContext) -> _Split | None:
    found = split_series(
        busy, context.limit("idle_below_percent"), context.limit("blips_percent") / 100
    )
    return found and _Split(gpu, *found)


def split_series(busy: Series, below: float, blips: float) -> tuple[int, float, float] | None:
    """Split at the earliest idle bin after which at most a share `blips` of the bins is busy.

    Bins that were not recorded are neither idle nor busy.

    Args:
        busy: use of a GPU per time bin (bins,) in %.
        below: use of an idle bin in %.
        blips: share of busy bins after the split.

    Returns:
        The bins before the split, their mean in %, and the share of the run that was recorded as
        idle after the split in %. None: the GPU was never used, or was used to the end.
    """
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
    return cut, sum(before) / len(before), 100 * idle_bins / len(busy)


def _finding(context: RuleContext, severity: Severity, splits: list[_Split]) -> Located:
    gpus = [split.gpu for split in splits]
    until = [split.used_bins * context.summary.bin_s for split in splits]
    share = span([split.idle_percent for split in splits], "%")
    return context.finding(
        severity,
        f"{name_all(gpus)} {'was' if len(gpus) == 1 else 'were'} used for the first "
        f"{span(until, 's')} and then idle for the last {share} of the run.",
        evidence=(
            *per_place(
                "idle time of the GPU at the end of the run",
                "%",
                [(at.gpu, at.idle_percent) for at in splits],
            ),
            *per_place(
                "GPU busy before the idle time", "%", [(at.gpu, at.busy_percent) for at in splits]
            ),
            *per_place(
                "time from the start to the last use of the GPU",
                "s",
                list(zip(gpus, until, strict=True)),
            ),
        ),
        judged_by=["idle_share_percent", "idle_share_critical_percent", "idle_below_percent"],
        action=(
            "End the GPU job when the work on the GPU ends, and "
            f"{advice.later_job(context.scheduler)}. If the program waits or hangs, read in its "
            f"log what happened {format_duration(min(until))} after the start."
        ),
        subjects=gpus,
        moments=context.moments_in(
            "gpu_busy_percent",
            [
                (at.gpu, [bin_ >= at.used_bins for bin_ in range(context.summary.bin_count)])
                for at in splits
            ],
        ),
    )
