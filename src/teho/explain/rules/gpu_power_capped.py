"""A GPU ran at its power limit."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_power_capped"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs whose clocks the power limit held down for much of the time."""
    look = Look(KIND, run, summary, thresholds)
    capped: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        share = look.stat(of, "gpu_power_throttle_percent")
        if share and share.mean >= look.limit("power_percent"):
            capped.append((of, share.mean))
    return look.outcome([_finding(look, capped)] if capped else [])


def _finding(look: Look, capped: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in capped]
    limits = [(of, limit_w) for of in places if (limit_w := of.gpu.device.power_limit_w)]
    return look.finding(
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
            "Nothing, where the GPU is hard at work. If the limit is lower than its maker's, as "
            "`nvidia-smi -q -d POWER` tells, someone set it."
        ),
        subjects=places,
    )
