"""A GPU ran at its power limit."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_power_capped"
RANK = 520
SAYS = "a GPU ran at its power limit"
SEVERITY = "remark"
THRESHOLDS = {
    "power_percent": Threshold(
        50.0, "%", "Teho's own choice: a busy GPU often runs at its power limit, as it should"
    ),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs whose clocks the power limit held down for much of the time."""
    capped: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        share = context.stat(of, "gpu_power_throttle_percent")
        if share and share.mean >= context.limit("power_percent"):
            capped.append((of, share.mean))
    return context.outcome([_finding(context, capped)] if capped else [])


def _finding(context: RuleContext, capped: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in capped]
    limits = [(of, limit_w) for of in places if (limit_w := of.gpu.device.power_limit_w)]
    return context.finding(
        Severity.REMARK,
        f"{name_all(places)} ran at {'its' if len(places) == 1 else 'their'} power limit in "
        f"{span([share for _, share in capped], '%')} of the samples.",
        evidence=(
            *per_place("slowed by the power cap", "%", capped),
            *per_place("GPU power, highest", "W", known(places, "gpu_power_w", "max")),
            *(per_place("power limit", "W", limits) if limits else ()),
        ),
        judged_by=["power_percent"],
        action=(
            "Nothing, if the GPU works hard. If the limit is lower than its maker's "
            "(`nvidia-smi -q -d POWER` shows it), someone set it."
        ),
        subjects=places,
    )
