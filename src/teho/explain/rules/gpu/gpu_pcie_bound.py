"""A GPU waited for copies over PCIe."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.kinds import DEEP_GPU
from teho.explain.peaks import no_peaks, peaks_of
from teho.explain.places import NodeGpu, name_all, per_place, recorded
from teho.explain.rule import Findings, Located, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import span
from teho.model.summary import Figure

RANK = 380
SEVERITY = "warning, remark"
THRESHOLDS = {
    "link_percent": Threshold(
        20.0,
        "%",
        "for TraceML, a profiler for training, copies to the GPU are critical if they take 20 % "
        "of the GPU's time",
    ),
    "warning_percent": chosen(
        50.0,
        "%",
        "if the copies use half of the highest rate of the PCIe link, the copies delay the run",
    ),
    "active_percent": Threshold(
        80.0,
        "%",
        "as in the rule gpu_sm_low: above this limit, the GPU also computed during the copies",
    ),
}
MUTES = (*DEEP_GPU, "batch_small")
MUTES_BECAUSE = "the GPU waited for copies, which explains why the GPU had little work"


class _Traffic(NamedTuple):
    """Traffic over a GPU's link, in the direction with more of it."""

    gpu: NodeGpu
    bytes_per_s: float
    percent: float
    """Share of the rate of the link."""
    active_percent: float
    """Share of the GPU that had work."""


def judge(context: RuleContext) -> Findings:
    """Find GPUs with much traffic over PCIe and too little work.

    A link at a fifth of its rate copies for at least a fifth of the time. If the GPU has enough
    work all the same, it works during the copies.
    """
    found = [traffic for gpu in context.gpus if (traffic := _traffic(context, gpu)) is not None]
    warning = context.limit("warning_percent")
    if high := [traffic for traffic in found if traffic.percent >= warning]:
        yield _finding(context, Severity.WARNING, high, "warning_percent")
    if low := [traffic for traffic in found if traffic.percent < warning]:
        yield _finding(context, Severity.REMARK, low)


def _traffic(context: RuleContext, gpu: NodeGpu) -> _Traffic | None:
    peaks = peaks_of(gpu.gpu.device)
    if peaks is not None and "pcie_generation" in peaks.lacks:
        return None
    active = _active_percent(context, gpu)
    if active is None or active >= context.limit("active_percent"):
        return None
    ways = [context.mean(gpu, f"gpu_pcie_{way}_bytes_per_s") for way in ("receive", "send")]
    most = max((rate for rate in ways if rate is not None), default=0.0)
    rate: Figure | None = peaks.pcie_bytes_per_s if peaks else None
    link = context.figure(
        gpu, "rate of the PCIe link", no_peaks(gpu.gpu.device) if rate is None else rate
    )
    if link is None or 100 * most / link < context.limit("link_percent"):
        return None
    return _Traffic(gpu, most, 100 * most / link, active)


def _active_percent(context: RuleContext, gpu: NodeGpu) -> float | None:
    """Return the share of the GPU that had work; without it, the busy share as an upper bound."""
    active = recorded([gpu], "gpu_sm_active_percent")
    return active[0][1] if active else context.mean(gpu, "gpu_busy_percent")


def _finding(
    context: RuleContext, severity: Severity, found: list[_Traffic], *judged_by: str
) -> Located:
    gpus = [traffic.gpu for traffic in found]
    shares = [(traffic.gpu, traffic.percent) for traffic in found]
    active = [(traffic.gpu, traffic.active_percent) for traffic in found]
    they = "The GPU" if len(gpus) == 1 else "The GPUs"
    return context.finding(
        severity,
        f"{name_all(gpus)} copied {span([one.bytes_per_s for one in found], 'B/s')} over PCIe "
        f"(the connection to the CPU), which is {span([share for _, share in shares], '%')} of "
        f"the highest rate. {they} had work for only {span([share for _, share in active], '%')} "
        "of the time.",
        evidence=(
            *per_place("used share of the highest PCIe rate, in the busier direction", "%", shares),
            *per_place("time in which the GPU had work", "%", active),
        ),
        judged_by=[*judged_by, "link_percent", "active_percent"],
        action=(
            'Copy while the GPU computes: `DataLoader(pin_memory=True)` with `batch.to("cuda", '
            "non_blocking=True)`. Copy less: if the program uses data again, keep these data on "
            "the GPU. Copy images as `uint8`, and convert them to floating-point numbers on the "
            "GPU."
        ),
        subjects=gpus,
    )
