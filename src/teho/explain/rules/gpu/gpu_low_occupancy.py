"""Few warps were resident on a GPU that was neither at its arithmetic's nor its memory's limit."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_low_occupancy"
RANK = 540
SAYS = "few warps were resident, and neither arithmetic nor memory was at its limit"
SEVERITY = "remark"
THRESHOLDS = {
    "occupancy_percent": Threshold(
        50.0, "%", "Alliance, best practices: above 50 %; DCGM's manual: more is not always better"
    ),
    "limit_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute, rule SOLBottleneck: from 60 % of a peak on, that unit is the limit",
    ),
}

_LIMITING = (
    "gpu_tensor_percent",
    "gpu_fp64_percent",
    "gpu_fp32_percent",
    "gpu_fp16_percent",
    "gpu_integer_percent",
    "gpu_dram_percent",
)
"""Whatever of these is near its limit sets the pace, however many warps are there."""

_NONE_SEEN = Missing(
    Reason.UNRECORDED, "no warps were seen while the GPU was busy: another's work, perhaps"
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Remark on GPUs with few resident warps. Low occupancy is not by itself slow."""
    found: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        occupancy = context.while_working(of, "gpu_sm_occupancy_percent")
        if occupancy is None or occupancy >= context.limit("occupancy_percent"):
            continue
        if occupancy == 0:
            # A kernel holds some. On AMD's GPUs it is told of the job's processes alone.
            context.figure(of, "SM occupancy", _NONE_SEEN)
            continue
        if not _at_a_limit(context, of):
            found.append((of, occupancy))
    return context.outcome([_finding(context, found)] if found else [])


def _at_a_limit(context: RuleContext, of: NodeGpu) -> bool:
    means = [mean for metric in _LIMITING for _, mean in known([of], metric, "mean")]
    return any(mean >= context.limit("limit_percent") for mean in means)


def _finding(context: RuleContext, found: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in found]
    return context.finding(
        Severity.REMARK,
        f"{name_all(places)} held {span([share for _, share in found], '%')} of the warps that "
        "fit, with neither arithmetic nor memory near its limit.",
        evidence=(
            *per_place("SM occupancy while at work", "%", found),
            *per_place("SM activity, mean", "%", known(places, "gpu_sm_active_percent", "mean")),
            *per_place("memory bandwidth, mean", "%", known(places, "gpu_dram_percent", "mean")),
        ),
        judged_by=["occupancy_percent", "limit_percent"],
        action=(
            "It may be as it should: a kernel can be fast with few warps. For kernels of your own, "
            "`ncu --section Occupancy --section SpeedOfLight CMD` says what keeps warps out and "
            "whether it matters."
        ),
        subjects=places,
    )
