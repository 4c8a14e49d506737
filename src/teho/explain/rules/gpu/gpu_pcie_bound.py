"""A GPU waited for copies from or to the CPU's memory."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.explain.peaks import no_peaks, peaks_of
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.summary import Figure

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_pcie_bound"
RANK = 380
SAYS = "a GPU waited for copies over PCIe"
SEVERITY = "warning, remark"
THRESHOLDS = {
    "link_percent": Threshold(
        20.0, "%", "TraceML: copies to the device that take 20 % of its time are critical"
    ),
    "warning_percent": Threshold(
        50.0, "%", "Teho's own choice: a run waits for copies that fill its link half of the time"
    ),
    "active_percent": Threshold(
        80.0, "%", "as gpu_sm_low: above it, copies were hidden behind work"
    ),
}
MUTES = Mutes(
    ("gpu_sm_low", "gpu_low_occupancy", "batch_small"),
    because="waiting for copies explains why there was little work",
)


class _Traffic(NamedTuple):
    """What went over a GPU's link in the busier direction."""

    of: NodeGpu
    bytes_per_s: float
    percent: float
    """Of what its link can carry."""
    active_percent: float
    """How much of the GPU had work meanwhile."""


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs with much traffic over PCIe that had too little work meanwhile.

    A link at a fifth of its rate spends at least a fifth of the time on copies. If the GPU
    was at work all the same, they were hidden behind it.
    """
    found = [traffic for of in context.gpus if (traffic := _traffic(context, of)) is not None]
    warning = context.limit("warning_percent")
    bands = (
        (Severity.WARNING, [traffic for traffic in found if traffic.percent >= warning]),
        (Severity.REMARK, [traffic for traffic in found if traffic.percent < warning]),
    )
    return context.outcome([_finding(context, severity, band) for severity, band in bands if band])


def _traffic(context: RuleContext, of: NodeGpu) -> _Traffic | None:
    peaks = peaks_of(of.gpu.device)
    if peaks is not None and "pcie_generation" in peaks.lacks:
        return None
    active = _active_percent(context, of)
    if active is None or active >= context.limit("active_percent"):
        return None
    ways = [context.stat(of, f"gpu_pcie_{way}_bytes_per_s") for way in ("receive", "send")]
    most = max((way.mean for way in ways if way is not None), default=0.0)
    rate: Figure | None = peaks.pcie_bytes_per_s if peaks else None
    link = context.figure(of, "rate of its link", no_peaks(of.gpu.device) if rate is None else rate)
    if link is None or 100 * most / link < context.limit("link_percent"):
        return None
    return _Traffic(of, most, 100 * most / link, active)


def _active_percent(context: RuleContext, of: NodeGpu) -> float | None:
    """Return how much of the GPU had work: its multiprocessors, else its busy share as a bound."""
    active = known([of], "gpu_sm_active_percent", "mean")
    if active:
        return active[0][1]
    busy = context.stat(of, "gpu_busy_percent")
    return busy.mean if busy else None


def _finding(context: RuleContext, severity: Severity, found: list[_Traffic]) -> Finding:
    places = [traffic.of for traffic in found]
    shares = [(traffic.of, traffic.percent) for traffic in found]
    active = [(traffic.of, traffic.active_percent) for traffic in found]
    its = "its link" if len(places) == 1 else "their links"
    limits = ["link_percent", "active_percent"]
    return context.finding(
        severity,
        f"{name_all(places)} moved {span([one.bytes_per_s for one in found], 'B/s')} over PCIe, "
        f"{span([share for _, share in shares], '%')} of what {its} can carry, and had work for "
        f"{span([share for _, share in active], '%')} of the time.",
        evidence=(
            *per_place("traffic of the busier way, of its link's rate", "%", shares),
            *per_place("at work", "%", active),
        ),
        judged_by=["warning_percent", *limits] if severity is Severity.WARNING else limits,
        action=(
            "Copy while the GPU computes, `DataLoader(pin_memory=True)` with "
            '`batch.to("cuda", non_blocking=True)`, and copy less: keep on the GPU what is used '
            "again, the whole data set if it fits, and send images as `uint8` and convert them "
            "there."
        ),
        subjects=places,
    )
