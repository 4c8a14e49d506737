"""A GPU that is poor at 64-bit arithmetic was made to do it."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, name_all, per_place, span
from teho.explain.peaks import Peaks, no_peaks, peaks_of
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing
from teho.model.summary import Figure

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_slow_fp64"
RANK = 400
SAYS = "a GPU that is slow at 64-bit arithmetic computed with 64 bits"
SEVERITY = "warning"
THRESHOLDS = {
    "fp64_percent": Threshold(
        10.0,
        "%",
        "Teho's own choice: a tenth of the time is more than a few numbers kept in 64 bit",
    ),
    "rate_percent": Threshold(
        25.0,
        "%",
        "Teho's own choice: by peaks.toml, chips made for 64 bit reach 50 %, others 3 % and less",
    ),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs whose 64-bit pipe was at work and is far slower than the 32-bit one."""
    found: list[tuple[NodeGpu, float, float]] = []
    for of in context.gpus:
        ratio = _ratio_percent(of, peaks_of(of.gpu.device))
        if not isinstance(ratio, Missing) and ratio >= context.limit("rate_percent"):
            continue
        share = context.while_working(of, "gpu_fp64_percent")
        if share is None or share < context.limit("fp64_percent"):
            continue
        rate = context.figure(of, "rate of 64-bit arithmetic", ratio)
        if rate is not None:
            found.append((of, share, rate))
    return context.outcome([_finding(context, found)] if found else [])


def _ratio_percent(of: NodeGpu, peaks: Peaks | None) -> Figure:
    """Return the 64-bit rate as a share of the 32-bit one."""
    if peaks is None or peaks.fp64_tflops is None or peaks.fp32_tflops is None:
        return no_peaks(of.gpu.device)
    return 100 * peaks.fp64_tflops / peaks.fp32_tflops


def _finding(context: RuleContext, found: list[tuple[NodeGpu, float, float]]) -> Finding:
    places = [of for of, _, _ in found]
    rates = [(of, rate) for of, _, rate in found]
    poor = "is a GPU that does" if len(places) == 1 else "are GPUs that do"
    return context.finding(
        Severity.WARNING,
        f"{name_all(places)} calculated in 64 bit {span([share for _, share, _ in found], '%')} of "
        f"the time, and {poor} so at {span([rate for _, rate in rates], '%')} of the 32-bit rate.",
        evidence=(
            *per_place("FP64 pipe while at work", "%", [(of, share) for of, share, _ in found]),
            *per_place("64-bit rate, of the 32-bit one", "%", rates),
        ),
        judged_by=["fp64_percent", "rate_percent", "at_work_percent"],
        action=(
            "If 64 bit is not meant, say so where arrays are made: NumPy's are 64 bit by default, "
            "`cupy.asarray(x, dtype=cupy.float32)`, `torch.as_tensor(x, dtype=torch.float32)`. If "
            "it is meant, a GPU made for it (V100, A100, H100, MI250X) does it many times faster."
        ),
        subjects=places,
    )
