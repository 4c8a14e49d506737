"""A GPU was busy for too little of the time."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_low_use"
RANK = 320
SAYS = "a GPU was busy for too little of the time"
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "busy_percent": Threshold(
        50.0, "%", "CSC, GPU-accelerated machine learning: consistently low, for example under 50 %"
    ),
    "warning_percent": Threshold(25.0, "%", "Jobstats: a mean of at most 25 % gets a note"),
    "critical_percent": Threshold(15.0, "%", "Jobstats: a mean of at most 15 % is red"),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs with a low mean, graded as Jobstats does: red, a note, and CSC's advice."""
    bands: dict[Severity, list[tuple[NodeGpu, float]]] = {severity: [] for severity in Severity}
    for of in context.gpus:
        busy = context.stat(of, "gpu_busy_percent")
        if busy is None or busy.mean >= context.limit("busy_percent"):
            continue
        bands[_severity(context, busy.mean)].append((of, busy.mean))
    return context.outcome(
        [_finding(context, severity, band) for severity, band in bands.items() if band]
    )


def _severity(context: RuleContext, mean_percent: float) -> Severity:
    if mean_percent <= context.limit("critical_percent"):
        return Severity.CRITICAL
    if mean_percent <= context.limit("warning_percent"):
        return Severity.WARNING
    return Severity.REMARK


def _finding(
    context: RuleContext, severity: Severity, means: list[tuple[NodeGpu, float]]
) -> Finding:
    low = [of for of, _ in means]
    limits = {
        Severity.CRITICAL: ["critical_percent", "busy_percent"],
        Severity.WARNING: ["warning_percent", "busy_percent"],
        Severity.REMARK: ["busy_percent"],
    }
    return context.finding(
        severity,
        f"{name_all(low)} {'was' if len(low) == 1 else 'were'} busy "
        f"{span([mean for _, mean in means], '%')} of the time.",
        evidence=(
            *per_place("GPU busy, mean", "%", means),
            *per_place("GPU busy, highest", "%", known(low, "gpu_busy_percent", "max")),
        ),
        judged_by=limits[severity],
        action=_action(context, low[0]),
        subjects=low,
    )


def _action(context: RuleContext, of: NodeGpu) -> str:
    workers = advice.loader_workers(of.node.cores, len(of.node.gpus))
    fewer = " or fewer GPUs" if len(context.gpus) > 1 else ""
    return (
        f"Feed the GPU in parallel, `DataLoader(num_workers={workers}, pin_memory=True, "
        "persistent_workers=True)`, and give it more at a time, with a larger `batch_size`. If the "
        f"problem is too small for this GPU, time it on CPU cores{fewer}: that may cost less."
    )
