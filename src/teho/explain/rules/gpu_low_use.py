"""A GPU was busy for too little of the time."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_low_use"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs with a low mean, graded as Jobstats does: red, a note, and CSC's advice."""
    look = Look(KIND, run, summary, thresholds)
    bands: dict[Severity, list[tuple[Gpu, float]]] = {severity: [] for severity in Severity}
    for of in look.gpus:
        busy = look.stat(of, "gpu_busy_percent")
        if busy is None or busy.mean >= look.limit("busy_percent"):
            continue
        bands[_severity(look, busy.mean)].append((of, busy.mean))
    return look.outcome(
        [_finding(look, severity, band) for severity, band in bands.items() if band]
    )


def _severity(look: Look, mean_percent: float) -> Severity:
    if mean_percent <= look.limit("critical_percent"):
        return Severity.CRITICAL
    if mean_percent <= look.limit("warning_percent"):
        return Severity.WARNING
    return Severity.REMARK


def _finding(look: Look, severity: Severity, means: list[tuple[Gpu, float]]) -> Finding:
    low = [of for of, _ in means]
    limits = {
        Severity.CRITICAL: ["critical_percent", "busy_percent"],
        Severity.WARNING: ["warning_percent", "busy_percent"],
        Severity.REMARK: ["busy_percent"],
    }
    return look.finding(
        severity,
        f"{name_all(low)} {'was' if len(low) == 1 else 'were'} busy "
        f"{span([mean for _, mean in means], '%')} of the time.",
        evidence=(
            *per_place("GPU busy, mean", "%", means),
            *per_place("GPU busy, highest", "%", known(low, "gpu_busy_percent", "max")),
        ),
        judged_by=limits[severity],
        action=_action(look, low[0]),
        subjects=low,
    )


def _action(look: Look, of: Gpu) -> str:
    workers = _advice.loader_workers(of.node.cores, len(of.node.gpus))
    fewer = " or fewer GPUs" if len(look.gpus) > 1 else ""
    return (
        f"Feed the GPU in parallel, `DataLoader(num_workers={workers}, pin_memory=True, "
        "persistent_workers=True)`, and give it more at a time, with a larger `batch_size`. If the "
        f"problem is too small for this GPU, time it on CPU cores{fewer}: that may cost less."
    )
