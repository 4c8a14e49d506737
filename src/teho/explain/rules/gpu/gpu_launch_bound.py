"""A GPU was busy with kernels that are too small to fill this GPU."""

from __future__ import annotations

from teho.explain.context import bins_that_hold, share_of
from teho.explain.gpu_words import fewer_kernels
from teho.explain.kinds import DEEP_GPU
from teho.explain.places import NodeGpu, gauges, name_all, per_place, recorded
from teho.explain.rule import Findings, RuleContext, Severity, Threshold
from teho.explain.shared_thresholds import MOST_OF_THE_TIME
from teho.explain.wording import span

RANK = 390
SEVERITY = "warning"
_SOURCE = (
    "KempnerPulse, a monitoring tool, reports a GPU that is busy for 40 % of the time or more and "
    "has an SM activity below 25 %"
)
THRESHOLDS = {
    "busy_percent": Threshold(40.0, "%", _SOURCE),
    "sm_active_percent": Threshold(25.0, "%", _SOURCE),
    "time_percent": MOST_OF_THE_TIME,
}
MUTES = DEEP_GPU
MUTES_BECAUSE = "this finding says why few multiprocessors of the GPU had work"


def judge(context: RuleContext) -> Findings:
    """Find GPUs that were busy with few of their multiprocessors, most of the time.

    Only a trace of the kernel launches would prove that the kernels are small. The recording shows
    that kernels follow each other and that none of them fills the GPU.
    """
    shares = [
        (gpu, share)
        for gpu in context.gpus
        if (share := _share(context, gpu)) is not None and share > context.limit("time_percent")
    ]
    if not shares:
        return
    gpus = [gpu for gpu, _ in shares]
    active = [mean for _, mean in recorded(gpus, "gpu_sm_active_percent")]
    waits = (
        " A GPU that waits for other GPUs shows the same values. To find out whether this GPU "
        "waits, run the program on only one GPU and compare the times of a step."
        if len(context.gpus) > 1
        else ""
    )
    yield context.finding(
        Severity.WARNING,
        f"{name_all(gpus)} {'was' if len(gpus) == 1 else 'were'} busy with small kernels "
        f"(functions on the GPU): only {span(active, '%')} of the multiprocessors (computing "
        "units) had work.",
        evidence=(
            *per_place(
                "time in which the GPU was busy, but few multiprocessors had work", "%", shares
            ),
            *gauges(gpus, "gpu_busy_percent"),
            *gauges(gpus, "gpu_sm_active_percent"),
        ),
        judged_by=["time_percent", "busy_percent", "sm_active_percent"],
        action=f"{fewer_kernels(context)}{waits}",
        subjects=gpus,
    )


def _share(context: RuleContext, gpu: NodeGpu) -> float | None:
    """Return the share of the recorded bins that were busy with few multiprocessors, in %."""
    busy = context.series(gpu, "gpu_busy_percent")
    if busy is None:
        return None
    least, below = context.limit("busy_percent"), context.limit("sm_active_percent")
    if (share_of(bins_that_hold(lambda share: share >= least, busy)) or 0.0) <= context.limit(
        "time_percent"
    ):
        return None
    active = context.series(gpu, "gpu_sm_active_percent")
    return share_of(
        bins_that_hold(lambda share, part: share >= least and part < below, busy, active)
    )
