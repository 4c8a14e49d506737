"""A GPU was busy, and much of it had no work."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_sm_low"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs whose multiprocessors were without work while the GPU counted as busy."""
    look = Look(KIND, run, summary, thresholds)
    bands: dict[Severity, list[tuple[Gpu, float]]] = {severity: [] for severity in Severity}
    for of in look.gpus:
        active = look.while_working(of, "gpu_sm_active_percent")
        if active is None or active >= look.limit("sm_active_percent"):
            continue
        grave = active < look.limit("warning_percent")
        bands[Severity.WARNING if grave else Severity.REMARK].append((of, active))
    return look.outcome(
        [_finding(look, severity, band) for severity, band in bands.items() if band]
    )


def _finding(look: Look, severity: Severity, found: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in found]
    its = "its" if len(places) == 1 else "their"
    busy = known(places, "gpu_busy_percent", "mean")
    when = " while at work" if busy else ""
    limits = ["sm_active_percent", "at_work_percent"]
    is_slice = all(of.gpu.device.parent_id for of in places)
    one, smaller = ("slice", "") if is_slice else ("GPU", ", or a MIG slice,")
    return look.finding(
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
