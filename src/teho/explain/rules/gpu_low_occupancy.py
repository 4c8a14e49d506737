"""Few warps were resident on a GPU that was neither at its arithmetic's nor its memory's limit."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_low_occupancy"

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


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Remark on GPUs with few resident warps. Low occupancy is not by itself slow."""
    look = Look(KIND, run, summary, thresholds)
    found: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        occupancy = look.while_working(of, "gpu_sm_occupancy_percent")
        if occupancy is None or occupancy >= look.limit("occupancy_percent"):
            continue
        if occupancy == 0:
            # A kernel holds some. On AMD's GPUs it is told of the job's processes alone.
            look.figure(of, "SM occupancy", _NONE_SEEN)
            continue
        if not _at_a_limit(look, of):
            found.append((of, occupancy))
    return look.outcome([_finding(look, found)] if found else [])


def _at_a_limit(look: Look, of: Gpu) -> bool:
    means = [mean for metric in _LIMITING for _, mean in known([of], metric, "mean")]
    return any(mean >= look.limit("limit_percent") for mean in means)


def _finding(look: Look, found: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in found]
    return look.finding(
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
