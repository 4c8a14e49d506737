"""A GPU was busy, and much of it had no work."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_sm_low"
RANK = 420
SAYS = "a GPU was busy, but many of its multiprocessors had no work"
SEVERITY = "warning, remark"
THRESHOLDS = {
    "sm_active_percent": Threshold(
        80.0,
        "%",
        "Alliance, best practices: keep SM activity above 80 %; DCGM's manual: 80 % is necessary",
    ),
    "warning_percent": Threshold(
        50.0, "%", "DCGM's manual: SM activity below 50 % is likely ineffective use of the GPU"
    ),
}
MUTES = Mutes(
    ("gpu_low_occupancy",),
    because="multiprocessors without work hold no warps either",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs whose multiprocessors were without work while the GPU counted as busy."""
    bands: dict[Severity, list[tuple[NodeGpu, float]]] = {severity: [] for severity in Severity}
    for of in context.gpus:
        active = context.while_working(of, "gpu_sm_active_percent")
        if active is None or active >= context.limit("sm_active_percent"):
            continue
        grave = active < context.limit("warning_percent")
        bands[Severity.WARNING if grave else Severity.REMARK].append((of, active))
    return context.outcome(
        [_finding(context, severity, band) for severity, band in bands.items() if band]
    )


def _finding(
    context: RuleContext, severity: Severity, found: list[tuple[NodeGpu, float]]
) -> Finding:
    places = [of for of, _ in found]
    its = "its" if len(places) == 1 else "their"
    busy = known(places, "gpu_busy_percent", "mean")
    when = " while at work" if busy else ""
    limits = ["sm_active_percent", "at_work_percent"]
    is_slice = all(of.gpu.device.parent_id for of in places)
    one, smaller = ("slice", "") if is_slice else ("GPU", ", or a MIG slice,")
    return context.finding(
        severity,
        f"{name_all(places)} used {span([active for _, active in found], '%')} of {its} "
        f"multiprocessors{when}.",
        evidence=(
            *per_place(f"SM activity{when}", "%", found),
            *(per_place("GPU busy, mean", "%", busy) if busy else ()),
        ),
        judged_by=["warning_percent", *limits] if severity is Severity.WARNING else limits,
        action=(
            "Give the GPU more at a time, with a larger `batch_size`, and fewer, larger kernels: "
            f"`torch.compile(model)`. If it does not fill this {one}, a smaller one{smaller} "
            "may do the same for less."
        ),
        subjects=places,
    )
