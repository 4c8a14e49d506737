"""A GPU always had a kernel running, and kernels too small to fill it."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_launch_bound"
RANK = 390
SAYS = "a GPU was busy with kernels too small to fill it"
SEVERITY = "warning"
THRESHOLDS = {
    "busy_percent": Threshold(
        40.0, "%", "KempnerPulse: busy at 40 % or more, and SM activity below 25 %"
    ),
    "sm_active_percent": Threshold(
        25.0, "%", "KempnerPulse: busy at 40 % or more, and SM activity below 25 %"
    ),
    "time_percent": Threshold(
        50.0, "%", "as SageMaker's profiler rules: more than 50 % of the time"
    ),
}
MUTES = Mutes(
    ("gpu_sm_low", "gpu_low_occupancy"),
    because="it says why few multiprocessors had work",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs that were busy with few of their multiprocessors, most of the time.

    Only the launches themselves would prove it: what is seen is that kernels follow each other
    and that none of them fills the GPU.
    """
    found: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        share = _share(context, of)
        if share is not None and share > context.limit("time_percent"):
            found.append((of, share))
    return context.outcome([_finding(context, found)] if found else [])


def _share(context: RuleContext, of: NodeGpu) -> float | None:
    """Return the share of the recorded bins, in %, that were busy with few multiprocessors."""
    busy = context.series(of, "gpu_busy_percent")
    if busy is None:
        return None
    least, below = context.limit("busy_percent"), context.limit("sm_active_percent")
    seen = [share for share in busy if share is not None]
    if 100 * sum(share >= least for share in seen) <= context.limit("time_percent") * len(seen):
        return None
    active = context.series(of, "gpu_sm_active_percent")
    verdicts = [
        share >= least and part < below
        for share, part in zip(busy, active or (), strict=False)
        if share is not None and part is not None
    ]
    return 100 * sum(verdicts) / len(verdicts) if verdicts else None


def _finding(context: RuleContext, found: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in found]
    active = known(places, "gpu_sm_active_percent", "mean")
    waits = (
        " A GPU that waits for others in a communication kernel looks the same: time a step on one "
        "GPU."
        if len(context.gpus) > 1
        else ""
    )
    return context.finding(
        Severity.WARNING,
        f"{name_all(places)} {'was' if len(places) == 1 else 'were'} busy with small kernels: "
        f"{span([mean for _, mean in active], '%')} of the multiprocessors had work.",
        evidence=(
            *per_place("time busy with few multiprocessors", "%", found),
            *per_place("GPU busy, mean", "%", known(places, "gpu_busy_percent", "mean")),
            *per_place("SM activity, mean", "%", active),
        ),
        judged_by=["time_percent", "busy_percent", "sm_active_percent"],
        action=(
            "Give each kernel more to do, with a larger `batch_size`, and launch fewer of them: "
            '`torch.compile(model, mode="reduce-overhead")` joins kernels and replays them as a '
            f"CUDA graph; `jax.jit` around the whole step does the same for JAX.{waits}"
        ),
        subjects=places,
    )
